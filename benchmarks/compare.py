"""Ratios of a run to an earlier one."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Record, Results, ResultsError, value_at
from benchmarks.sections import SECTIONS
from benchmarks.tables import NOTHING, Table, ratio


def require_comparable(old: Results, command: str) -> None:
    if old.command != command:
        raise ResultsError(f"those are results of {old.command}, not of {command}")


def compare(new: Results, old: Results) -> Table:
    """Each number over the earlier one, for the rows both runs have; below 1 is less."""
    require_comparable(old, new.command)
    section = SECTIONS[new.command]
    keys = [key for key in section.keys if any(key in row for row in old.rows + new.rows)]
    earlier = {_key(row, keys): row for row in old.rows}
    lines, unmatched = [], 0
    for row in new.rows:
        before = earlier.get(_key(row, keys))
        ratios = [None if before is None else _ratio(row, before, m) for m in section.metrics]
        if before is None:
            unmatched += 1
        elif any(r is not None for r in ratios):
            lines.append([*map(_shown, _key(row, keys)), *map(ratio, ratios)])
    then, now = (
        f"{x.environment.get('revision')} ({x.environment.get('date')})" for x in (old, new)
    )
    notes = [] if not unmatched else [f"{unmatched} rows have no match in the earlier run."]
    changed = _changes(old, new)
    if changed:
        notes.append(f"Not like for like: {', '.join(changed)} changed.")
    columns = [*keys, *section.metrics.values()]
    title = f"Ratio to the earlier run: {now} over {then}"
    return Table(title, columns, lines, notes, texts=len(keys))


def _key(row: Record, keys: Sequence[str]) -> tuple[object, ...]:
    return tuple(row.get(key) for key in keys)


def _shown(value: object) -> str:
    return NOTHING if value is None else str(value)


def _ratio(row: Record, before: Record, metric: str) -> float | None:
    now, then = value_at(row, metric), value_at(before, metric)
    return now / then if now is not None and then else None


def _changes(old: Results, new: Results) -> list[str]:
    keys = ("device", "threads", "idle_threads", "torch")
    changed = [key for key in keys if old.environment.get(key) != new.environment.get(key)]
    return changed if old.busy == new.busy else [*changed, "busy neighbours"]
