"""A page as a tree, read by a parser that knows nothing of how it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, tag: str, **attributes: str) -> list[Node]:
        """Descendants with the tag and the attributes, in the order of the page."""
        nodes = [c for c in self.children if isinstance(c, Node)]
        found: list[Node] = []
        for node in nodes:
            if node.tag == tag and attributes.items() <= node.attributes.items():
                found.append(node)
            found += node.all(tag, **attributes)
        return found

    def one(self, tag: str, **attributes: str) -> Node:
        [found] = self.all(tag, **attributes)
        return found


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("document")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(page: str) -> Node:
    """Raises an `AssertionError` where elements are not properly nested."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert len(builder.open) == 1, f"never closed: {[node.tag for node in builder.open[1:]]}"
    return builder.open[0]
