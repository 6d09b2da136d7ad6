"""What a run has learnt, as one HTML page that needs nothing but itself."""
