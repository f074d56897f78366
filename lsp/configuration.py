"""Settings from the user's file and from the editor, as they are now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codespec.config import Settings

SECTION = "codespec.server"
"""What is asked for in the editor's configuration: sections and keys as in `config.toml`."""

_FileState = tuple[int, int, int] | None


class Configuration:
    """`options`: what came with `initialize`; `client`: what the editor says later, which wins."""

    def __init__(self) -> None:
        self.options: object = None
        self.client: object = None
        self._file: _FileState = None
        self._loaded = False

    def load(self) -> Settings:
        """Raises: ConfigError, as `load_settings`."""
        from codespec.config import load_settings

        self._file, self._loaded = _file_state(), True
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
        """Whether the user's file changed since `load`. Costs a few microseconds."""
        return self._loaded and self._file != _file_state()


def section_of(settings: object) -> object:
    """Our section in the parameters of `workspace/didChangeConfiguration`, None where there is
    none."""
    for name in SECTION.split("."):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def _file_state() -> _FileState:
    from codespec.config import config_path

    try:
        s = os.stat(config_path())
    except OSError:
        return None
    return s.st_mtime_ns, s.st_ino, s.st_size
