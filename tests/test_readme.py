"""The README's Python runs as it stands, from top to bottom."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_python_block_runs():
    text = README.read_text()
    blocks = list(PYTHON_BLOCK.finditer(text))
    assert blocks, "the README shows no Python"
    namespace: dict = {}
    for block in blocks:
        lines_above = text.count("\n", 0, block.start(1))
        source = "\n" * lines_above + block[1]
        exec(compile(source, str(README), "exec"), namespace)
