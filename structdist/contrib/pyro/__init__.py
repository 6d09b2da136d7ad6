"""Structured distributions for Pyro: `pip install "structdist[pyro]"`.

Three classes wrap the distributions of this package, `LinearChainCRF` and `SemiMarkovCRF` alike.
They obey `pyro.sample`, with plates, `expand`, `mask` and `to_event`, and differ in their draws:

| class | draws | gradient of the ELBO |
| --- | --- | --- |
| `Discrete(dist)` | exact events, without `rsample` | score function; exact by enumeration |
| `StraightThrough(dist, temperature)` | exact events | pathwise, that of their relaxation: biased |
| `Relaxed(dist, temperature)` | relaxed rows | pathwise, of the relaxed objective |

A prior is `Discrete`, whatever the guide draws: its `log_prob` takes relaxed events too, and hands
gradients on to them. With `TraceMeanField_ELBO` the divergence of guide and prior is the exact one.

    def model(x):
        with pyro.plate("sentences", len(x)):
            z = pyro.sample("z", Discrete(prior.expand((len(x),))))   # [B, T, K]
            pyro.sample("x", Categorical(logits=decoder(z)).to_event(1), obs=x)

    def guide(x):
        with pyro.plate("sentences", len(x)):
            pyro.sample("z", StraightThrough(crf(encoder(x)), temperature=0.5))

Enumeration (`TraceEnum_ELBO`, `infer={"enumerate": "parallel"}`) is for `Discrete`, in the guide or
in the model, and for chains of one length. The other two refuse it: Pyro takes a site that has
`rsample` for a pathwise one even when it enumerates it, and its answer would be silently wrong.
"""

try:
    import pyro  # noqa: F401
except ImportError as error:
    raise ImportError(
        'structdist.contrib.pyro needs Pyro: pip install "structdist[pyro]"'
    ) from error

from structdist.contrib.pyro.distributions import Discrete, Relaxed, StraightThrough

__all__ = ["Discrete", "Relaxed", "StraightThrough"]
