"""One tagger with the CRF of each library: what it finds, and what it costs."""
