"""What the user can put right."""

from __future__ import annotations


class SettingError(ValueError):
    """A setting that makes no sense."""
