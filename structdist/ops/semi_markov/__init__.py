"""Semi-Markov chains: the dynamic programs over segmentations, on plain tensors.

The problem, the integer form of its outcomes, and the reference stand beside the fast backends: in
torch (`rescaled`), in Triton (`triton`) and, as far as the forward pass, its adjoint and draws go,
compiled (`native`).
`structdist.ops` registers them.
"""
