"""One page from a report: no network, no other file; the same report, the same bytes."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from models.report import charts
from models.report.colours import state_css
from models.report.content import Report
from models.report.numbers import cell_text, decimal, percent, times
from models.templates.segments import segments

HERE = Path(__file__).parent


def render(report: Report) -> str:
    """A whole HTML document; parts that the report has not are left out."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    style = (HERE / "page.css").read_text(encoding="utf-8") + state_css(report.colours)
    digest = hashlib.sha256(script.encode()).digest()  # what the policy knows its one script by
    page = _environment().get_template("page.html")
    return page.render(
        report=report,
        drawings=charts.drawings(report.charts),
        chart=charts,
        browser_data=asdict(report.browser)["tables"] if report.browser else [],
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(digest).decode(),
    ).lstrip()


def _environment() -> Environment:
    """Text is escaped wherever it stands; JSON has no character that could end its element."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Any = {"cell": cell_text, "decimal": decimal, "percent": percent, "times": times}
    environment.filters.update(filters, segments=segments)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment
