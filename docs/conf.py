"""How the documentation is built: `make docs`. Nothing is fetched, neither then nor when read."""

import os
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_extensions"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(DOCS), str(ROOT)])  # for the tutorials
os.environ.setdefault("OMP_NUM_THREADS", "1")  # their tensors are small
if "STRUCTDIST_DATA" in os.environ:  # they run in folders of their own
    os.environ["STRUCTDIST_DATA"] = str(Path(os.environ["STRUCTDIST_DATA"]).resolve())

import structdist  # noqa: E402

project = "structdist"
author = "The structdist developers"
version = release = structdist.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "source_files",
]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!structdist\b).*"),  # what is not ours is not in our index
    ("py:class", r"structdist\.(base\.(Self|Parameters)|linear_chain\.Chains)"),
]

# Pages are Markdown; those with code cells are run anew at every build.
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = -1  # none: a busy machine is no error
nb_execution_show_tb = True
nb_merge_streams = True
nb_code_prompt_show = "show the code"
nb_code_prompt_hide = "hide the code"

# Docstrings: single backticks are code, and shapes say more than annotations.
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "structdist"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"


def keep_shapes(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Shapes come first in the docstrings of properties; napoleon would take them for a type."""
    if what == "property":
        lines.insert(0, "")


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", keep_shapes, priority=400)  # before napoleon
