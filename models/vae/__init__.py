"""The model of Fu et al. (2020): inference network, decoder, and how likely sentences are."""
