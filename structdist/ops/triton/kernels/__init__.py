"""Kernels in Triton. They are imported when the first of them is launched, and not before."""
