"""The role {source}`structdist/base.py`: a file of the repository, which must be there.

It is a link where the metadata of the package name a "Source" on the web, and plain code elsewhere.
"""

from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

ROOT = Path(__file__).parent.parent.parent


def repository() -> str | None:
    """The address that `project_urls` in setup.py has under "Source"."""
    urls = (url.split(", ", 1) for url in metadata("structdist").get_all("Project-URL") or ())
    return dict(urls).get("Source")


class SourceFile(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if not (ROOT / self.text).exists():
            where = self.get_location()
            report = self.inliner.reporter.error(f"no such file: {self.text}", source=where)
            return [], [report]
        code, address = nodes.literal("", self.text), repository()
        if address is None:
            return [code], []
        return [nodes.reference("", "", code, refuri=f"{address}/blob/main/{self.text}")], []


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("source", SourceFile())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
