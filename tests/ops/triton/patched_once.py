"""A pytest plugin: the interpreter makes its language ready once for each kernel.

By itself it does so for every function that a kernel calls, which takes a third of all its time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from triton import language
from triton.runtime import interpreter

LANGUAGES = (language, language.core)


def is_ready(module: ModuleType) -> bool:
    """Are its functions those of the interpreter?"""
    return not language.core.is_builtin(module.load)


def pytest_configure() -> None:
    patch = interpreter._patch_lang

    def patch_if_needed(function: Callable[..., Any]) -> Any:
        seen = [x for x in function.__globals__.values() if inspect.ismodule(x) and x in LANGUAGES]
        return interpreter._LangPatchScope() if all(map(is_ready, seen)) else patch(function)

    interpreter._patch_lang = patch_if_needed
