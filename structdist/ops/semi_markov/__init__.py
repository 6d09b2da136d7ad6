"""Semi-Markov chains: the dynamic programs over segmentations, on plain tensors.

The problem, the integer form of its outcomes, and the reference stand beside the fast backend in
torch (`rescaled`). `structdist.ops` registers them.
"""
