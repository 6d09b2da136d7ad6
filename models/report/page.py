"""One page from a report: no network, no other file; the same report, the same bytes."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from models.report import charts
from models.report.colours import state_css
from models.report.content import Browser, Report
from models.report.numbers import cell_text, decimal, percent, times
from models.templates.segments import segments

HERE = Path(__file__).parent


def render(report: Report) -> str:
    """A whole HTML document; parts that the report has not are left out."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    style = (HERE / "page.css").read_text(encoding="utf-8") + state_css(report.colours)
    digest = hashlib.sha256(script.encode()).digest()  # what the policy knows its one script by
    page = (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            drawings=charts.drawings(report.charts),
            chart=charts,
            browser_data=_browser_data(report.browser) if report.browser else [],
            style=Markup(style),
            script=Markup(script),
            script_hash=base64.b64encode(digest).decode(),
        )
    )
    return page.lstrip()


def _environment() -> Environment:
    """Text is escaped wherever it stands; JSON has no character that could end its element."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "cell": cell_text,
        "decimal": decimal,
        "percent": percent,
        "segments": segments,
        "times": times,
    }
    environment.filters.update(filters)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def _browser_data(browser: Browser) -> list[dict[str, Any]]:
    """What the script needs to show the sentence of a table and a template."""
    return [
        {
            "label": table.label,
            "outputs": [
                {"template": o.template, "text": o.text, "runs": o.sentence.runs, "note": o.note}
                for o in table.outputs
            ],
        }
        for table in browser.tables
    ]
