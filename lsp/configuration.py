"""Settings from the user's file and from the editor, as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codespec.files import FileState, state_of

if TYPE_CHECKING:
    from pathlib import Path

    from codespec.config import Settings

SECTION = "codespec.server"
"""What is asked for in the editor's configuration: sections and keys as in `config.toml`."""


class Configuration:
    """`options`: what came with `initialize`; `client`: what the editor says later, which wins."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self.options: object = None
        self.client: object = None
        self._file: FileState = None

    def load(self) -> Settings:
        """Raises: ConfigError, as `load_settings`."""
        from codespec.config import config_path, load_settings

        self._path = config_path()
        self._file = state_of(self._path)
        merged: dict[str, Any] = {}
        for layer in (self.options, self.client):
            for section, values in layer.items() if isinstance(layer, Mapping) else ():
                # What is no table is named by `load_settings`.
                known = merged.get(section)
                if isinstance(known, Mapping) and isinstance(values, Mapping):
                    merged[section] = {**known, **values}
                else:
                    merged[section] = values
        return load_settings(merged)

    @property
    def file_changed(self) -> bool:
        """Whether the user's file changed since `load`. Takes a few microseconds."""
        return self._path is not None and self._file != state_of(self._path)


def section_of(settings: object) -> object:
    """Our section in the parameters of `workspace/didChangeConfiguration`, None where there is
    none."""
    for name in SECTION.split("."):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings
