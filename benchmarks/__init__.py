"""Benchmarks of `structdist`; run from a checkout: `python -m benchmarks --help`."""
