"""The figures of these pages, drawn at build time from the library's own answers.

Time runs to the right and states downwards, in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

BLUE, RED, GREY = "#2f6fa8", "#c8443c", "#8a8f98"
STATES = ("#2f6fa8", "#e0a030", "#4a9c6d", "#a05da5", "#c8443c")

set_matplotlib_formats("svg")
plt.rcParams.update(
    {
        "figure.figsize": (6.4, 2.4),
        "figure.constrained_layout.use": True,
        "font.size": 10.5,
        "axes.titlesize": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
    }
)


def panels(count: int, height: float = 2.4, widths: Sequence[float] | None = None) -> list[Axes]:
    """Axes beside each other."""
    figure, axes = plt.subplots(1, count, figsize=(6.4, height), squeeze=False, width_ratios=widths)
    figure.get_layout_engine().set(wspace=0.06)
    return list(axes[0])


def rows(count: int, height: float = 1.2) -> list[Axes]:
    """Axes below each other, over one time axis."""
    _, axes = plt.subplots(count, 1, figsize=(6.4, height * count), squeeze=False, sharex=True)
    return list(axes[:, 0])


def heat(ax: Axes, values: Tensor, title: str = "", names: Sequence[str] | None = None) -> None:
    """Values [T, K], dark where they are large."""
    grid = values.detach().T
    ax.imshow(grid, cmap="Blues", aspect="auto", vmin=min(0.0, float(grid.min())))
    ax.set_title(title)
    label_states(ax, values.shape[-1], names)
    ax.set_xticks(range(len(values)), range(1, len(values) + 1))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def label_states(ax: Axes, num_states: int, names: Sequence[str] | None) -> None:
    ax.set_yticks(range(num_states), names or [f"state {k}" for k in range(num_states)])


def lattice(
    ax: Axes,
    marginals: Tensor,
    edge_marginals: Tensor,
    path: Tensor | None = None,
    title: str = "",
    names: Sequence[str] | None = None,
) -> None:
    """Nodes [T, K] and edges [T-1, K, K] as thick as they are probable, and a path in red."""
    num_steps, num_states = marginals.shape
    for t in range(num_steps - 1):
        for i in range(num_states):
            for j in range(num_states):
                probability = float(edge_marginals[t, i, j])
                ax.plot([t, t + 1], [i, j], color=BLUE, alpha=0.35, lw=0.3 + 7 * probability)
    if path is not None:
        ax.plot(range(num_steps), path.tolist(), color=RED, lw=1.6, zorder=2)
    for k in range(num_states):
        size = (12 + 240 * marginals[:, k]).tolist()
        ax.scatter(range(num_steps), [k] * num_steps, s=size, color=BLUE, zorder=3)
    ax.set_title(title)
    label_states(ax, num_states, names)
    ax.set_xticks(range(num_steps), range(1, num_steps + 1))
    ax.set_ylim(num_states - 0.5, -0.5)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def bands(ax: Axes, labels: Tensor, starts: Tensor, title: str = "") -> None:
    """A segmentation: labels [T] as colours, with a gap before each segment that begins."""
    begins = [*starts.nonzero().flatten().tolist(), len(labels)]
    for first, end in pairwise(begins):
        color = STATES[int(labels[first])]
        ax.axvspan(first - 0.4, end - 0.6, color=color, alpha=0.85, lw=0)
    ax.set_yticks([])
    ax.set_title(title, loc="left")
    ax.set_xlim(-0.5, len(labels) - 0.5)
    for spine in ax.spines.values():
        spine.set_visible(False)
