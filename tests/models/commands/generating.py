"""What the tests of `python -m models generate` ask for, and how they read the answers."""

from __future__ import annotations

import json

from models.commands import main

TABLES = ["name[The Vaults], eatType[pub]", '{"name": "Zizzi", "area": "riverside"}']
TABLES.append("name[Aromi], near[Burger King], food[French]")
BAD = "name[The Vaults"


def run(*arguments) -> None:
    main([str(argument) for argument in arguments])


def records(lines) -> list[dict]:
    return [json.loads(line) for line in lines]
