"""The registry of structures that all generic tests run over.

A new structure is an entry in `STRUCTURES` of `registry.py`: an object with what `structure.py`
asks for (examples, an oracle by enumeration, questions, samplers, problems for kernels). A new
backend needs no entry: those that `structdist.ops.backends()` lists are tested. What belongs to one
structure alone is tested in a folder of its own (`tests/linear_chain/`).

Nothing is imported here, so that entries can import what the registry imports too.
"""
