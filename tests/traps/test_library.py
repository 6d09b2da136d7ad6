"""The compiled library is checked before it is trusted."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

from structdist.ops.native import library

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compile_library(folder: Path, source: str) -> None:
    """A library of that name in C, in a folder."""
    (folder / "source.c").write_text("#include <stdint.h>\n" + source)
    made = str(folder / library.FILE_NAME)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", made, folder / "source.c"], check=True)


def layout_of(*numbers: int) -> str:
    """A library that says that its arguments have this layout."""
    listed = ", ".join(map(str, numbers))
    return f"""
    int supported() {{ return 1; }}
    int64_t structdist_layout(int64_t* numbers, int64_t room) {{
        const int64_t found[] = {{{listed}}};
        for (int64_t i = 0; i < {len(numbers)} && i < room; ++i) numbers[i] = found[i];
        return {len(numbers)};
    }}
    """


VERSION, *SIZES = library.LAYOUT
UNFIT = {
    "without the layout": "int supported() { return 1; }",
    "of another version": layout_of(VERSION + 1, *SIZES),
    "of the version before": layout_of(VERSION - 1, *SIZES),
    "with a larger struct": layout_of(VERSION, *SIZES[:-1], SIZES[-1] + 8),
    "with a struct more": layout_of(VERSION, *SIZES, 8),
    "with a struct less": layout_of(VERSION, *SIZES[:-1]),
}


def assert_refused(folder: Path) -> None:
    with pytest.warns(UserWarning, match=r"without its compiled kernels.*pip install"):
        loaded, reason = library.load(folder)
    assert loaded is None
    assert library.FILE_NAME in reason
    assert library.REBUILD in reason


@needs_compiler
@pytest.mark.parametrize("source", UNFIT.values(), ids=UNFIT)
def test_an_unfit_library_is_refused_with_advice(source, tmp_path):
    compile_library(tmp_path, source)
    assert_refused(tmp_path)


@pytest.mark.parametrize("content", ["", "not a library\n", "\x7fELF"])
def test_a_file_that_is_no_library_is_refused_with_advice(content, tmp_path):
    (tmp_path / library.FILE_NAME).write_text(content)
    assert_refused(tmp_path)


def test_a_missing_library_has_a_reason_and_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded, reason = library.load(tmp_path)
    assert loaded is None
    assert "not built: this is the wheel without" in reason


def test_an_install_without_a_compiler_leaves_its_reason(tmp_path):
    (tmp_path / "not_built.txt").write_text("at install there was no C++ compiler\n")
    _, reason = library.load(tmp_path)
    assert reason == "it was not built: at install there was no C++ compiler"


@needs_compiler
def test_a_processor_that_lacks_something_is_no_fault_of_the_library(tmp_path):
    source = layout_of(*library.LAYOUT).replace("return 1;", "return 0;", 1)
    compile_library(tmp_path, source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded, reason = library.load(tmp_path)
    assert loaded is None
    assert "processor" in reason


@pytest.mark.skipif(library.unavailable is not None, reason=str(library.unavailable))
def test_the_good_library_is_loaded(tmp_path):
    shutil.copy(Path(library.__file__).with_name(library.FILE_NAME), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded, reason = library.load(tmp_path)
    assert isinstance(loaded, ctypes.CDLL)
    assert reason is None
