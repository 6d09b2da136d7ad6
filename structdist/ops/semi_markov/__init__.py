"""Semi-Markov chains: the dynamic programs over segmentations, on plain tensors.

The problem, the integer form of its outcomes, and the reference stand beside the fast backends: in
torch (`rescaled`), in Triton (`triton`) and, all but the k best, compiled (`native`). Where L = 1
those of linear chains serve (`single_steps`). `structdist.ops` registers all of them.
"""
