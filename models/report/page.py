"""One page from a report: no network, no other file; the same report, the same bytes."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from models.report import charts
from models.report.colours import state_css
from models.report.content import Output, Report
from models.report.numbers import cell_text, decimal
from models.templates.segments import segments

PAGE = Path(__file__).with_name("page.html")


def render(report: Report) -> str:
    """A whole HTML document; parts that the report has not are left out."""
    script, style = (PAGE.with_suffix(end).read_text(encoding="utf-8") for end in (".js", ".css"))
    digest = hashlib.sha256(script.encode()).digest()  # what the policy knows its one script by
    page = template(PAGE, cell=cell_text, decimal=decimal, segments=segments)
    return page.render(
        report=report,
        drawings=charts.drawings(report.charts),
        chart=charts,
        browser_data=[
            {"label": table.label, "outputs": [_plain(output, report) for output in table.outputs]}
            for table in report.browser
        ],
        style=Markup(style + state_css(report.colours)),
        script=Markup(script),
        script_hash=base64.b64encode(digest).decode(),
    ).lstrip()


def _plain(output: Output, report: Report) -> dict[str, Any]:
    """Its template is a number among those of the report."""
    return asdict(output) | {"template": report.templates.index(output.template)}


def template(path: Path, **filters: Any) -> Template:
    """Text is escaped wherever it stands in HTML and SVG; JSON has nothing that could end it."""
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.get_template(path.name)
