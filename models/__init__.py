"""Models that reuse `structdist`; run from a checkout."""
