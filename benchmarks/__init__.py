"""Benchmarks of `structdist`; run from a checkout."""
