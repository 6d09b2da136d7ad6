"""Templates, the states of sentences: found, stored, searched, compared and explained."""
