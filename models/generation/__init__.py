"""From a trained model to sentences, and from what a user types to its inputs."""
