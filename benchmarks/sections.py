"""How the results of each command are told: tables, a plot, and what to compare them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import load, overhead, plots
from benchmarks.checks import GRADIENT_TOLERANCE
from benchmarks.faults.cases import HALF_TOLERANCE, TOLERANCE
from benchmarks.faults.tables import fault_tables, plot_faults
from benchmarks.gradients.errors import YARDSTICK
from benchmarks.gradients.plots import plot_gradients
from benchmarks.gradients.quality import ERRORS_TO_TELL
from benchmarks.gradients.tables import gradient_tables
from benchmarks.gradients.times import TIMED_CHAINS, TIMED_FUNCTION
from benchmarks.launch_tables import estimate_tables, launch_cells, launch_columns
from benchmarks.neighbours import beside
from benchmarks.operations import OPERATIONS
from benchmarks.results import Record, Results
from benchmarks.sampler_checks import LEVEL
from benchmarks.samplers import FLOOR
from benchmarks.spans.tables import plot_spans, span_tables
from benchmarks.tables import (
    NOTHING,
    SIZES,
    Table,
    by_size,
    details,
    megabytes,
    microseconds,
    milliseconds,
    number,
    ratio,
)
from benchmarks.tagging.tables import plot_tagging, tagging_tables


@dataclass(frozen=True)
class Section:
    title: str
    about: str
    tables: Callable[[Results], list[Table]]
    plot: Callable[[Results, Path], None]
    keys: Sequence[str]  # by which rows of two runs are matched
    metrics: Mapping[str, str]  # numbers to compare: where they are, and their name


def sampler_tables(results: Results) -> list[Table]:
    neighbours = beside(results.busy)
    groups = by_size(results.rows)
    return [_sampler_table(size + neighbours, rows) for size, rows in groups.items()]


def _sampler_table(title: str, rows: list[Record]) -> Table:
    columns = [
        "operation",
        "contender",
        "status",
        "forward, ms",
        "forward+backward, ms",
        "peak MB",
        "f+b peak MB",
        "speed-up",
        "f+b speed-up",
        "over floor",
        *launch_columns(rows),
    ]
    lines = [
        [
            row["operation"],
            row["contender"],
            row["status"],
            milliseconds(row["forward"]),
            milliseconds(row["forward_backward"]),
            megabytes(row["forward_bytes"]),
            megabytes(row["forward_backward_bytes"]),
            ratio(row["forward_speedup"]),
            ratio(row["forward_backward_speedup"]),
            ratio(row["over_floor"]),
            *launch_cells(row, rows),
        ]
        for row in rows
    ]
    return Table(title, columns, lines, details(rows), texts=3)


def scaling_tables(results: Results) -> list[Table]:
    claim = results.settings.get("claim")
    notes = [claim] if claim else []
    return [_exponent_table(results.summary, notes), _points_table(results.rows)]


def _exponent_table(summary: list[Record], notes: list[str]) -> Table:
    columns = ["operation", "contender", "grows", "points", "time exponent", "memory exponent"]
    lines = [
        [
            *(line[key] for key in ("operation", "contender", "axis")),
            str(line["points"]),
            _exponent(line["time_exponent"], line.get("time_exponents")),
            _exponent(line["memory_exponent"]),
        ]
        for line in summary
    ]
    return Table("Exponents over the larger half of the points", columns, lines, notes, texts=3)


def _exponent(value: float | None, within: Sequence[float] | None = None) -> str:
    """A slope and, if that is known, what it may be for all that the quartiles of times say."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" + (" ({:.2f}..{:.2f})".format(*within) if within else "")


def _points_table(rows: list[Record]) -> Table:
    sizes = {letter: name for letter, name in SIZES.items() if any(name in row for row in rows)}
    columns = ["operation", "contender", "grows", *sizes, "time, ms", "peak MB"]
    lines = [
        [
            *(row[key] for key in ("operation", "contender", "axis")),
            *(str(row[key]) for key in sizes.values()),
            milliseconds(row["time"]),
            megabytes(row["bytes"]),
        ]
        for row in rows
    ]
    return Table("All points", columns, lines, details(rows), texts=3)


def ratio_tables(results: Results) -> list[Table]:
    lines = [
        [
            row["work"],
            row["status"],
            *(_value(row, key) for key in ("median", "lowest", "highest")),
            f"{'at least' if row['goal']['at_least'] else 'at most'} "
            f"{row['goal']['limit']:g} {row['unit']}",
            NOTHING if row["reached"] is None else "yes" if row["reached"] else "no",
        ]
        for row in results.rows
    ]
    columns = ["work", "status", "median", "lowest", "highest", "goal", "reached"]
    title = f"{results.settings['threads']} threads, {results.settings['rounds']} rounds"
    return [Table(title, columns, lines, details(results.rows), texts=2)]


def _value(row: Record, key: str) -> str:
    return NOTHING if row["value"] is None else f"{number(row['value'][key])} {row['unit']}"


def train_step_tables(results: Results) -> list[Table]:
    columns = ["work", "B", "T", "K", "hidden", "vocabulary", "ms a batch", "tokens/s", "peak MB"]
    lines = [
        [
            row["work"],
            *(str(row[key]) for key in ("batch", "length", "states", "hidden", "vocabulary")),
            milliseconds(row["time"]),
            number(row["tokens_per_second"]),
            megabytes(row["bytes"]),
        ]
        for row in results.rows
    ]
    return [Table(f"Template VAE{beside(results.busy)}", columns, lines)]


def load_tables(results: Results) -> list[Table]:
    columns = ["operation", "B", "T", "K", "busy", "time, ms", "mean, ms"]
    columns += ["over quiet", "mean over quiet"]
    lines = [
        [
            row["operation"],
            *(str(row[key]) for key in ("batch", "length", "states", "busy")),
            milliseconds(row["time"]),
            NOTHING if row["mean"] is None else number(1e3 * row["mean"]),
            ratio(row["over_quiet"]),
            ratio(row["mean_over_quiet"]),
        ]
        for row in results.rows
    ]
    title = f"structdist on {results.environment['threads']} threads beside busy processes"
    return [Table(title, columns, lines, details(results.rows))]


def overhead_tables(results: Results) -> list[Table]:
    wholes = [row for row in results.rows if row["part"] is None]
    parts = [row for row in results.rows if row["part"] is not None]
    title = f"Operations at {results.settings['size']}"
    names = [f"{row['operation']}{', f+b' * row['backward']}" for row in wholes]
    return [
        _overhead_table(title, "operation", names, wholes),
        _overhead_table("Parts of log-z, f+b", "part", [row["part"] for row in parts], parts),
    ]


def _overhead_table(title: str, kind: str, names: list[str], rows: list[Record]) -> Table:
    lines = [
        [name, microseconds(row["time"]), ratio(row["over_unit"])]
        for name, row in zip(names, rows, strict=True)
    ]
    return Table(title, [kind, "time, us", f"over {overhead.UNIT}"], lines)


SECTIONS = {
    "samplers": Section(
        "Samplers and inference",
        "Median milliseconds and quartiles of interleaved repeats, each on fresh inputs and a new "
        "distribution object; forward runs without a graph where the library allows it; "
        "forward+backward takes the gradient by emissions and transitions (of semi-Markov chains "
        "by durations too). Peak memory is what "
        "one call allocates through torch at one time. Speed-up is structdist's over this "
        "contender: the contender's median over structdist's. Every answer was checked first: "
        f"values within {OPERATIONS['log-z'].tolerance:.0e} (log Z) or "
        f"{OPERATIONS['marginals'].tolerance:.0e} (marginals, entropy) and gradients within "
        f"{GRADIENT_TOLERANCE:.0e} of the float64 reference, samplers by chi-square on whole paths "
        f"and on the joint of identical batch items (p < {LEVEL:.0e} fails). A contender that "
        "fails is listed, without a time. "
        "JAX, where it is installed, works on arrays of its own and is compiled before; its memory "
        "is out of torch's sight. "
        f"`{FLOOR}` is T (forward) and 3T (forward+backward) bare products of [B, K] and [K, K]. "
        "Launches are the kernels that a GPU is given: every operation of torch that is no view, "
        "and Triton's kernels (those of genbmm are not seen). On CUDA they are counted in a run, "
        "elsewhere in a dry run, structdist's by the backend that would serve a GPU.",
        sampler_tables,
        plots.plot_samplers,
        ("operation", "contender", "batch", "length", "longest", "states"),
        {
            "forward.median": "forward",
            "forward_backward.median": "forward+backward",
            "forward_bytes": "peak",
            "forward_backward_bytes": "f+b peak",
        },
    ),
    "estimates": Section(
        "Estimates for a GPU, not measurements",
        "Nothing here was timed. Launches, sequential time steps inside kernels, and bytes that "
        "kernels read and write were counted in dry runs without a GPU; a model on paper makes "
        "milliseconds of them: launches x launch cost + steps x step cost + bytes / bandwidth, "
        "with the card's figures in `benchmarks/cards.py` (or in the command above). Every "
        "operation of torch that is no view counts as one launch, which is too few for those that "
        "launch several kernels, and arithmetic counts as nothing. structdist is counted by the "
        "backend that would serve a GPU.",
        estimate_tables,
        plots.plot_estimates,
        ("operation", "contender", "batch", "length", "states"),
        {
            "launches.forward.count": "launches",
            "launches.forward_backward.count": "f+b launches",
            "estimate.forward": "forward, estimate",
            "estimate.forward_backward": "forward+backward, estimate",
        },
    ),
    "gradients": Section(
        "Gradient estimators",
        "Estimates of the gradient of E[f(z)] by all scores of a structure (structdist.estimators, "
        "float32), beside the exact gradient g*, which is known by dynamic programming, by "
        "enumeration, or from so many draws that its error is small (each table says which). "
        "Everything is relative to |g*|: bias is |mean - g*|, which an unbiased estimator shows as "
        f"large as its error by chance; below {ERRORS_TO_TELL:g} such errors it is not shown to be "
        "one. Cosine is that of the expected estimate and g*. Variance is the trace of the "
        "covariance of one estimate. Log variance ratio is log(Var / |mean|) (Fu et al., 2020, "
        "section 5.1), the mean over coordinates. Squared error is squared bias and variance; a "
        "gradient of 0 has the error 1. Error of direction is the least squared error that a "
        "factor on the estimate leaves: a learning rate is one, too. It lies between 0 and 1. "
        "Unbiased estimators have a bias of 0 in both, by theory. "
        "Every estimate calls the reward equally often. At equal time, estimates are repeated as "
        f"often as the time of one by {YARDSTICK} allows, with the median times of {TIMED_CHAINS} "
        f"chains in a batch and f = {TIMED_FUNCTION}, from scores to gradients, side by side. "
        "With more reward calls only variance falls, so a biased estimator is the better one up to "
        "some number of them. `reinforce-c` takes off the exact mean reward, which nobody knows in "
        "practice. Scores and weights of rewards are random, and weights shrink with the square "
        "root of the length; means over several such problems.",
        gradient_tables,
        plot_gradients,
        ("function", "length", "estimator", "temperature"),
        {
            "cosine": "cosine",
            "bias": "bias",
            "variance": "variance",
            "seconds": "time",
        },
    ),
    "scaling": Section(
        "Scaling",
        "Time and peak memory (forward+backward where there is a gradient) as one of T, K and B "
        "(and L, the longest segment) grows; the exponent is a least-squares slope on log-log "
        "axes.",
        scaling_tables,
        plots.plot_scaling,
        ("operation", "contender", "axis", "batch", "length", "longest", "states"),
        {"time.median": "time", "bytes": "peak"},
    ),
    "ratios": Section(
        "Costs beside others, and goals",
        "Forward and backward in float32, both sides of a ratio side by side on fresh inputs, "
        "every answer checked first. The ratio of a round is that of its medians; over rounds the "
        "table has the median and both ends. Extra memory is how much the peak of the resident set "
        "of a fresh process rises in both passes of log Z, beside what the arguments take.",
        ratio_tables,
        plots.plot_ratios,
        ("work",),
        {"value.median": "value"},
    ),
    "load": Section(
        "Beside busy neighbours",
        "Median milliseconds and quartiles of structdist (forward+backward where there is a "
        "gradient) on a quiet machine and beside processes that keep a core busy each, in turns of "
        f"{load.RUNS_PER_TURN} runs. Over quiet is a median or mean over that without neighbours. "
        "The median is of a usual run; the mean also has those that waited until a neighbour left "
        "its core, and with as many neighbours as cores and threads a fair share makes it 2x.",
        load_tables,
        plots.plot_load,
        ("operation", "batch", "length", "states", "busy"),
        {"time.median": "time", "over_quiet": "over quiet", "mean_over_quiet": "mean over quiet"},
    ),
    "overhead": Section(
        "Fixed costs",
        "Median microseconds and quartiles on the smallest chain, and the median over that of "
        f"`{overhead.UNIT}(x, -1).sum().backward()` with x of the same size, in turns of "
        f"{overhead.RUNS_PER_TURN} runs. "
        "Every operation builds its distribution; f+b is forward, the sum of what it gives, and "
        "backward. The parts are timed in runs of their own, with the clock read in between; "
        "release lets go of the distribution and of the graph.",
        overhead_tables,
        plots.plot_overhead,
        ("operation", "backward", "part"),
        {"time.median": "time", "over_unit": f"over {overhead.UNIT}"},
    ),
    "train-step": Section(
        "A training step of the template VAE",
        "Loss, gradient, clipping and an Adam update on one batch of sentences of full length "
        "(median milliseconds and quartiles, one estimator after the other). REINFORCE draws 5 "
        "samples. `importance-nll` is the likelihood of sentences with 100 importance samples. "
        "Table 4 of Fu et al. (2020) has, on a P100 with batch 100: REINFORCE 1.42 s and 1.8 GB, "
        "Gumbel-CRF 0.48 s and 1.1 GB. `hidden` is the size of the decoder, of each direction of "
        "the inference network and of word embeddings, as there; a state is embedded by the "
        "matrices that it meets, and not once more before.",
        train_step_tables,
        plots.plot_train_steps,
        ("work", "batch", "length", "states", "hidden", "vocabulary"),
        {"time.median": "time", "bytes": "peak"},
    ),
    "spans": Section(
        "Named entities over spans",
        "One encoder (words, spelling, an LSTM in both directions; nothing pretrained) under a "
        "linear chain of BIO tags and under semi-Markov chains of segments, with one budget and "
        "optimiser. Mean and standard deviation over seeds, each at the epoch with its best F1 on "
        "dev. A span counts if its start, end and label are right. Seconds are the median CPU time "
        "of an epoch of training.",
        span_tables,
        plot_spans,
        ("tagger", "seed"),
        {"dev.f1": "dev F1", "test.f1": "test F1", "seconds": "seconds"},
    ),
    "tagging": Section(
        "One tagger, the CRF of each library",
        "The same encoder (words, spelling, an LSTM in both directions; nothing pretrained), the "
        "same initial parameters, order of sentences and optimiser for a seed, under the "
        "linear-chain CRF of each library, used as its documentation says. Training forbids "
        "nothing. Each seed is scored at the epoch with its best F1 on dev; mean and standard "
        "deviation over seeds. Without constraints, an I tag that follows nothing of its label "
        "begins an entity, as in conlleval; with them, such tags have a score of -1e9. Seconds are "
        "CPU time, the median over epochs and seeds; the CRF is its loss and gradients, timed "
        "apart from encoder and optimiser. Peak memory is what the CRF allocates through torch at "
        "one time for the longest training sentences of a batch.",
        tagging_tables,
        plot_tagging,
        ("library", "seed"),
        {
            "free.f1": "test F1",
            "constrained.f1": "test F1, constrained",
            "seconds": "seconds",
            "crf_seconds": "CRF seconds",
            "crf_bytes": "CRF peak",
        },
    ),
    "faults": Section(
        "Hard cases",
        "What a linear chain gives in cases that are known to go wrong, asked of each library by "
        "its documented use. Right is an answer within "
        f"{TOLERANCE:g} of forward-backward in float64 (in half precision {HALF_TOLERANCE:g}), "
        "errors being relative to the largest entry, or to 1 if that is less; a sampler is right "
        f"unless chi-square of whole paths has p < {LEVEL:.0e}. An error is what the library "
        "raised, which may be the answer that it promises: pytorch-crf says that it takes no empty "
        "sentences. What a library does not offer counts neither for nor against it.",
        fault_tables,
        plot_faults,
        ("case", "question", "contender"),
        {},
    ),
}
