"""What commands print is what they were given."""

from __future__ import annotations

from rich.table import Table

from models.commands.options import plain_console

MARKUP = "[/b] [bold]x[/] :cat: \\\\[a]"


def test_brackets_and_colons_are_no_markup(capsys):
    table = Table("words", title=MARKUP)
    table.add_row(MARKUP)
    plain_console().print(MARKUP)
    plain_console().print(table)
    assert capsys.readouterr().out.count(MARKUP) == 3
