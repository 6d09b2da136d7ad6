"""The results of `faults`: a table of outcomes, how each library was asked, and a picture of it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.faults.contenders import CONTENDERS
from benchmarks.faults.outcomes import ERROR, NAN, NOT_OFFERED, RIGHT, WRONG, Outcome
from benchmarks.plots import plt
from benchmarks.results import Results
from benchmarks.tables import Table

COLOURS = {RIGHT: "#7fbf7b", WRONG: "#e08214", NAN: "#b2182b", ERROR: "#762a83", NOT_OFFERED: "0.9"}


def outcomes(results: Results) -> tuple[list[str], dict[tuple[str, str], dict[str, Outcome]]]:
    """The contenders, and the outcome of each by case and question."""
    found: dict[tuple[str, str], dict[str, Outcome]] = {}
    for row in results.rows:
        outcome = Outcome(row["outcome"], row["detail"])
        found.setdefault((row["case"], row["question"]), {})[row["contender"]] = outcome
    return list(dict.fromkeys(row["contender"] for row in results.rows)), found


def fault_tables(results: Results) -> list[Table]:
    contenders, found = outcomes(results)
    abouts = {row["case"]: row["about"] for row in results.rows}
    lines = [
        [case, question, *(str(by_contender[name]) for name in contenders)]
        for (case, question), by_contender in found.items()
    ]
    counts = [
        [
            name,
            *(str(sum(line[name].kind == kind for line in found.values())) for kind in COLOURS),
        ]
        for name in contenders
    ]
    columns = ["case", "question", *contenders]
    asked = [[c.name, c.asked_by] for c in CONTENDERS if c.name in contenders]
    return [
        Table("How often", ["contender", *COLOURS], counts),
        Table("Outcomes", columns, lines, texts=len(columns)),
        Table("The cases", ["case", "what it is"], [*map(list, abouts.items())], texts=2),
        Table("How each library was asked", ["contender", "calls"], asked, texts=2),
    ]


def plot_faults(results: Results, path: Path) -> None:
    """A row for each question, a column for each contender, a colour for each kind of outcome."""
    contenders, found = outcomes(results)
    figure, axes = plt.subplots(figsize=(8, 0.28 * len(found) + 1.2), layout="constrained")
    for row, by_contender in enumerate(found.values()):
        for column, name in enumerate(contenders):
            colour = COLOURS[by_contender[name].kind]
            axes.add_patch(plt.Rectangle((column, row), 0.96, 0.9, color=colour))
    axes.set_xlim(0, len(contenders))
    axes.set_ylim(len(found), 0)
    axes.set_xticks([x + 0.48 for x in range(len(contenders))], contenders)
    axes.xaxis.tick_top()
    names = [f"{case}: {question}" for case, question in found]
    axes.set_yticks([y + 0.45 for y in range(len(found))], names, fontsize="small")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    figure.legend(
        handles, COLOURS, loc="outside lower center", ncols=len(COLOURS), fontsize="small"
    )
    axes.spines[:].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
