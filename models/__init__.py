"""The latent-template VAE of Fu et al. (2020), on the public names of `structdist`.

A sentence x has a template z, one state per word. The inference network gives q(z | x), a
`LinearChainCRF`; the generative model is autoregressive in both. An estimator says how the gradient
of E_q[log p(x, z)] + beta H[q] is taken.
"""
