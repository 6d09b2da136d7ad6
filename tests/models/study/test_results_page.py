"""The page of results has what the studies say whose results are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from models.commands.train import settings_reader
from models.study.plan import read_study
from models.study.report import write_report

PAGE = Path("models/RESULTS.md")
KEPT = [
    path for path in sorted(Path("models/studies").glob("*.yaml")) if path.with_suffix("").is_dir()
]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_tables_of_results(path, tmp_path):
    """Also after a run was added, or its results have changed."""
    page = PAGE.read_text(encoding="utf-8")
    study = read_study(path, tmp_path, settings_reader())
    report = write_report(replace(study, runs=tuple(run for run in study.runs if run.kept)))
    assert f"python -m models study {path} --report" in page
    told = report.read_text(encoding="utf-8")
    for title in ("Results", "Scores of what was written"):
        own = told.partition(f"### {title}\n")[2].partition("\n### ")[0]
        rows = [line for line in own.splitlines() if line.startswith("|")]
        assert [row for row in rows if row not in page] == []
