"""The settings of this process, from the one table that the runtime declares."""

from __future__ import annotations

from . import _runtime

__all__ = ["Setting", "config", "settings"]


class Setting:
    """One setting: ``name`` (its environment variable), ``type``, ``default``, ``help``, and ``value``, what it is in this process."""

    __slots__ = ("default", "help", "name", "type", "value")

    def __init__(self, name: str, type: str, default: str, help: str) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.help = help
        self.value = _runtime.config_get(name)

    def __repr__(self) -> str:
        return f"{self.name}={self.value}"


def settings() -> list[Setting]:
    """All settings, in the order of the documentation."""
    return [Setting(*row) for row in _runtime.config_table()]


def config(name: str | None = None) -> dict[str, str] | str:
    """The value of the setting ``name`` ("TACK_CPU_THREADS") as text; without a name, all of them.

    Settings are environment variables that are read once, when tack is imported. Raises ValueError for an unknown name.
    """
    if name is not None:
        return _runtime.config_get(name)
    return {setting.name: setting.value for setting in settings()}
