"""The differential fuzzer: random chains, answered by every backend and by enumeration.

    python -m tests.fuzz --seed 1 --seconds 60

`cases` makes the arguments of distributions from a seed and a number, `listings` lists all outcomes
of a chain, `exact` has the answers that follow from the list in float64, with the bounds that
rounding leaves, `questions` holds the answers of a distribution to them, `sanitized` runs all of
it on kernels that are compiled with sanitizers.
"""
