"""Training on Lightning: resumable to the step, on one device or several."""
