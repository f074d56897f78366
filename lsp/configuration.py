"""The current settings: the user's file, with the editor's settings over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codespec.system.files import FileState, state_of

if TYPE_CHECKING:
    from pathlib import Path

    from codespec.config import Settings

SECTION = "codespec.server"
"""Our section of the editor's configuration: sections and keys as in `config.toml`."""
RESTRAINT = "restraint"
"""One more section: what files of the workspace ask the editor for, which may be less alone."""
_SERVER = "server"
_MODELS = {"model": ("target", "fallback", "draft"), "edits": ("model",)}
"""Settings that name models."""


class Configuration:
    """The sources of the settings.

    options: the editor's, with `initialize`.
    client: the editor's later ones, which win over `options`.
    """

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
                # An error of `load_settings` names a section that is no table.
                known = merged.get(section)
                if isinstance(known, Mapping) and isinstance(values, Mapping):
                    merged[section] = {**known, **values}
                else:
                    merged[section] = values
        asked = merged.pop(RESTRAINT, {})
        _refuse_servers(merged)
        settings = load_settings(merged)
        return _restrained(settings, asked) if asked else settings

    @property
    def file_changed(self) -> bool:
        """True if the user's file changed since `load`. Takes a few microseconds."""
        return self._path is not None and self._file != state_of(self._path)


def section_of(settings: object) -> object:
    """Our section in the parameters of `workspace/didChangeConfiguration`, None where there is
    none."""
    for name in SECTION.split("."):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def _refuse_servers(options: Mapping[str, Any]) -> None:
    """Refuse to take a server, or a file of its key, from an editor, which may have it from a
    workspace: text and key would go where a repository says.

    Raises: ConfigError.
    """
    from codespec.backends.registry import scheme_of
    from codespec.config import config_path
    from codespec.errors import ConfigError

    named = [_SERVER] if options.get(_SERVER) else []
    for section, keys in _MODELS.items():
        values = options.get(section)
        if not isinstance(values, Mapping):
            continue
        for key in keys:
            value = values.get(key)
            if isinstance(value, str) and ("://" in value or scheme_of(value)):
                named.append(f"{section}.{key}")
    if named:
        raise ConfigError(
            f"the options: {named[0]}: no editor and no workspace may name a server",
            f"Name it in your own settings file, {config_path()}, or in the environment.",
        )


def _restrained(settings: Settings, asked: object) -> Settings:
    """The settings, less what is asked for.

    Raises: ConfigError.
    """
    import msgspec

    from codespec.errors import ConfigError
    from codespec.restraint import EditRestraint, Restraint

    try:
        points = dict(asked) if isinstance(asked, Mapping) else asked
        of_edits = points.pop("edits", {}) if isinstance(points, dict) else {}
        by = msgspec.convert(points, Restraint)
        edits = settings.edits.restrained(msgspec.convert(of_edits, EditRestraint))
    except msgspec.ValidationError as e:
        hint = "It may have points that can be restrained, see docs/restraint.md."
        raise ConfigError(f"the options: {RESTRAINT}: {e}", hint) from None
    completion = settings.completion.restrained(by)
    return msgspec.structs.replace(settings, completion=completion, edits=edits)
