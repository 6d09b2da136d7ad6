"""The documentation: all public names have an entry, files that it names exist, and it builds."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.test_architecture import APIS, PUBLIC_MODULES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
ids = {"ids": lambda path: str(path.relative_to(ROOT))}

# The sources ----------------------------------------------------------------------------------


@cache
def documented() -> set[str]:
    """Full names of all that the reference has an entry for."""
    text = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    return set(re.findall(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", text, re.MULTILINE))


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_every_public_name_is_in_the_reference(module: str):
    public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    elsewhere = {name.replace("structdist.nn.", "structdist.") for name in public}
    assert elsewhere - documented() == {"structdist.__version__"} & elsewhere


@pytest.mark.parametrize("kind", APIS)
def test_every_member_is_in_the_reference(kind: type):
    """Of the class or of the base; but those that torch documents."""
    owners = (f"structdist.{kind.__name__}", "structdist.StructuredDistribution")
    missing = {
        name
        for name in APIS[kind]
        if not any(f"{owner}.{name}" in documented() for owner in owners)
    }
    page = (DOCS / "api/distributions.md").read_text()
    torchs = {name for name in missing if not is_ours(kind, name) or f"`{name}" in page}
    assert missing - torchs == set()


def is_ours(kind: type, name: str) -> bool:
    owner = next(base for base in kind.__mro__ if name in vars(base))
    return owner.__module__.startswith("structdist")


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], **ids)
def test_every_file_it_names_exists(page: Path):
    named = r"`((?:structdist|benchmarks|models|tests|docs(?!/_build))/[\w/.-]*)"
    for name in re.findall(named, page.read_text()):
        assert (ROOT / name).exists(), name


def test_the_readme_links_to_nothing_beside_it():
    """It is read elsewhere too, where a relative link leads nowhere."""
    targets = re.findall(r"\]\(([^)]*)\)", (ROOT / "README.md").read_text())
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


# What is built from them ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does, with every tutorial run."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder


class Links(HTMLParser):
    """The anchors of a page, where it links to, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.targets.append(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in given:
            self.loaded.append(given["src"])


def broken_links(site: Path) -> Iterator[str]:
    pages = {path: Links(path) for path in site.rglob("*.html")}
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            anchors = pages[file].anchors if file in pages else {anchor}
            if not file.exists() or (anchor and anchor not in anchors):
                yield f"{page.relative_to(site)}: {target}"


@pytest.mark.slow
def test_no_link_is_broken(site: Path):
    assert list(broken_links(site)) == []


@pytest.mark.slow
def test_nothing_is_fetched_by_a_reader(site: Path):
    loaded = [name for path in site.rglob("*.html") for name in Links(path).loaded]
    assert loaded
    assert [name for name in loaded if urlsplit(name).netloc] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text()), style


@pytest.mark.slow
def test_no_page_tells_of_the_machine_that_built_it(site: Path):
    """A warning that a cell prints would name the folder of the file it comes from."""
    telling = (str(ROOT), sys.prefix, "Traceback (most recent call last)")
    for page in site.rglob("*.html"):
        assert [text for text in telling if text in page.read_text()] == [], page


@pytest.mark.slow
def test_links_that_are_broken_are_found(tmp_path: Path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">x</a><a href="c.html">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html">x</a><a href="#here">x</a>')
    assert list(broken_links(tmp_path)) == ["a.html: b.html#there", "a.html: c.html"]
