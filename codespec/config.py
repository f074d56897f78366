"""Settings. Sources, later ones win: defaults < user TOML < environment < options.

Every key can be set as an environment variable CODESPEC_<SECTION>_<KEY>, e.g.
CODESPEC_COMPLETION_MAX_TOKENS=32. An unknown key is an error that names the nearest known one:
a silent typo is a setting that does not work. Nothing here is read from a repository.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_origin

import msgspec
import platformdirs

from codespec import limits
from codespec.errors import ConfigError
from codespec.limits import (
    NAMES,
    PATTERNS,
    Bytes,
    Count,
    Milliseconds,
    Name,
    PathText,
    Several,
    at_most,
    between,
    next_step,
)
from codespec.restraint import EditRestraint, Restraint, strictest, strictest_edits

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib


DEFAULT_N_CTX = 2048
_MOST_SHOWN = 100
"""Most characters of a wrong value or name in an error."""
_LEAST_N_CTX = 64
"""Least context window in tokens: with less there is hardly a prompt, and with far less llama.cpp
ends the process."""
_MOST_N_CTX = 1 << 24


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]"""

    target: PathText = ""
    """GGUF file of the target model, or a name of the user's list; empty: the bundled one. Or the
    address of a server."""
    fallback: PathText = ""
    """The same, of a model here that answers while a server of `target` does not; empty: none."""
    draft: PathText = "auto"
    """The same for the draft model, of any tokenizer; "auto": the one distilled for the workspace,
    else the target's MTP head, else a bundled one; "": none."""
    n_ctx: Annotated[
        int,
        msgspec.Meta(
            ge=0, le=_MOST_N_CTX, description=f"from {_LEAST_N_CTX} to {_MOST_N_CTX:,}, or 0"
        ),
    ] = 0
    """Context window in tokens; 0: 2048, or the length the model was trained with, if less."""
    n_threads: Annotated[int, between(0, 512)] = 0
    """CPU threads; 0: at most one per core and 8, fewer while others keep the cores busy."""
    kv_type: Literal["f16", "q8_0"] = "f16"
    """Type of keys and values in the KV cache; q8_0 halves it and costs some accuracy and speed."""
    max_saved_kv_bytes: Bytes = 268_435_456
    """Bytes for KV caches of documents that others took the place of, 0: none are kept; and of
    paused requests, of which the last three are kept in any case."""
    n_gpu_layers: Annotated[int, between(-1, 1 << 16)] = -1
    """Layers on the GPU where there is one; -1: all."""

    def __post_init__(self) -> None:
        if 0 < self.n_ctx < _LEAST_N_CTX:
            raise ValueError(f"model.n_ctx needs to be 0 or at least {_LEAST_N_CTX}")

    def window(self, n_trained: int) -> int:
        """Tokens of context in use for a model that was trained on so many, 0 for unknown."""
        return self.n_ctx or max(_LEAST_N_CTX, min(DEFAULT_N_CTX, n_trained or DEFAULT_N_CTX))


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[server]: of a `model.target` that is a server. Like such a target itself, from the user's
    own file, environment or flags alone."""

    key_file: PathText = ""
    """File with the server's key, and nothing else; empty: the server asks for none."""
    ca_file: PathText = ""
    """Certificates (PEM) of the authorities that are trusted instead of the system's."""
    tokenizer: PathText = ""
    """Vocabulary of the server's model, so that it is sent token ids: a GGUF file of it, with or
    without weights, a name on the user's list, or its tokenizer.json; empty: the one that the
    server names, if it is here."""
    family: Name = ""
    """Name of the model's fill-in-the-middle format, such as "qwen", where its vocabulary is
    unknown; empty: told by the model's name."""
    share_workspace: bool = False
    """Send the server the tokens of your workspace's index, where it drafts from what it is sent:
    all files that are indexed, without what looks like a secret."""
    allow_unencrypted: bool = False
    """Send your text, and the key, over the network by plain http, where anybody on the way can
    read and change it."""


class CompletionSettings(Restraint, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[completion]; what files of a workspace may restrict, too, is a `Restraint`."""

    enabled: bool = True
    """Completions in editors."""
    disabled_languages: Annotated[tuple[Name, ...], at_most(PATTERNS)] = ()
    """Languages without completions, by the editor's names for them."""
    max_tokens: Several = 64
    """Most tokens of a suggestion."""
    deadline_auto_ms: Milliseconds = 400.0
    """Milliseconds for an answer that nobody asked for; then the part that is finished is shown."""
    deadline_invoked_ms: Milliseconds = 3000.0
    """Milliseconds for an answer that the user asked for."""
    linger_ms: Milliseconds = 3000.0
    """Milliseconds that a generation may go on after that, while the model is free, for later
    use."""
    show_late: bool = True
    """Show the first line that is finished after the deadline, where none was before, while the
    generation goes on."""
    adaptive: bool = True
    """Suggest less, unasked, at kinds of places where suggestions were hardly ever accepted."""
    prefetch: bool = True
    """Prefill the prompt of a place that is likely asked for next, while the model is free; and
    where a suggestion was taken, make the one after the next while that is read."""
    n_candidates: Several = 3
    """Different suggestions to choose from when the user asks."""
    temperature: Annotated[float, between(0, 100)] = 0.0
    """Sampling; 0: always the likeliest token."""
    n_prefix_tokens: Count = 1024
    """Most tokens of the file in the prompt, before the cursor."""
    n_suffix_tokens: Count = 256
    """Most tokens of the file in the prompt, after the cursor."""
    max_read_ms: Milliseconds = 1000.0
    """Milliseconds for reading so many tokens; a model that takes longer is shown a half of them,
    a quarter or an eighth; 0: no limit."""

    def deadline_ms(self, invoked: bool) -> float:
        """Milliseconds for an answer."""
        return self.deadline_invoked_ms if invoked else self.deadline_auto_ms

    def restrained(self, by: Restraint) -> CompletionSettings:
        """The settings where somebody else may ask for less."""
        return msgspec.structs.replace(self, **msgspec.structs.asdict(strictest(self, by)))


Switch: TypeAlias = Literal["auto", "on", "off"]


class ContextSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[context]: text of other files in the prompt. "auto": where the model gains by it, see
    `context/retrieval.py`."""

    symbols: Switch = "auto"
    """Definitions in other files of names used near the cursor."""
    buffers: Switch = "auto"
    """Parts of other open documents that are like the text around the cursor."""
    edits: Switch = "auto"
    """Lines that you changed or deleted lately."""
    max_tokens: Count = 512
    """Most tokens of all three together."""


def without_none(drafters: Iterable[str]) -> tuple[str, ...]:
    """Names of drafters; empty for "none" alone."""
    named = tuple(name for name in drafters if name)
    return () if named == ("none",) else named


class DraftingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[drafting]"""

    drafters: Annotated[tuple[Name, ...], at_most(NAMES)] = ("lookup", "aligned", "model")
    """Drafters in order of preference; () or "none": plain decoding."""
    max_width: Count = 16
    """Most drafted tokens verified in one pass; four times as many where an old text is
    rewritten."""
    adaptive: bool = True
    """Ask drafters seldom where that has not paid: a pass of the smallest models takes no longer
    than asking."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "drafters", without_none(self.drafters))


class EditsSettings(EditRestraint, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[edits]: next edits; what files of a workspace may restrict, too, is an `EditRestraint`."""

    eagerness: Literal["high", "medium", "low"] = "medium"
    """Least probability that an edit is right: 0.4, 0.7 or 0.8."""
    model: PathText = ""
    """GGUF file of a next-edit model, or a name of the user's list; loaded beside the target when
    it is first asked; empty: none."""

    def restrained(self, by: EditRestraint) -> EditsSettings:
        """The settings where somebody else may ask for less."""
        asked = EditRestraint(**{n: getattr(self, n) for n in EditRestraint.__struct_fields__})
        return msgspec.structs.replace(self, **msgspec.structs.asdict(strictest_edits(asked, by)))


class IndexSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[index]"""

    enabled: bool = True
    """Index workspaces, and draft from them."""
    exclude: Annotated[tuple[PathText, ...], at_most(PATTERNS)] = ()
    """Files that are never indexed, drafted from or completed, beside those that ignore files
    exclude: patterns as in .gitignore, from the workspace's folder."""
    max_file_bytes: Bytes = 1_000_000
    """Files that are larger are not indexed."""
    max_cache_bytes: Bytes = 2_000_000_000
    """Bytes of all indexes together; beyond it, those not used for longest are deleted."""


class DaemonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[daemon]"""

    idle_minutes: Annotated[float, between(0, 10**9)] = 30.0
    """Minutes without a client after which the daemon ends."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level of messages in the daemon's log, which holds no text of documents."""
    power: Literal["auto", "full"] = "auto"
    """"auto": on battery, no prompt is read ahead, and nothing is generated that may be thrown
    away; "full": as if plugged in."""


class StatsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[stats]"""

    enabled: bool = True
    """Count suggestions, on this machine alone: see `codespec stats`."""


class HttpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[http]"""

    cors_origins: Annotated[tuple[Name, ...], at_most(NAMES)] = ()
    """Origins (https://app.example) of web pages that may read answers, where they show a key."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    model: ModelSettings = ModelSettings()
    server: ServerSettings = ServerSettings()
    completion: CompletionSettings = CompletionSettings()
    context: ContextSettings = ContextSettings()
    drafting: DraftingSettings = DraftingSettings()
    edits: EditsSettings = EditsSettings()
    index: IndexSettings = IndexSettings()
    daemon: DaemonSettings = DaemonSettings()
    http: HttpSettings = HttpSettings()
    stats: StatsSettings = StatsSettings()

    @property
    def may_draft_itself(self) -> bool:
        """True if a target's MTP head is to draft for it, where it has one."""
        return self.model.draft == "auto" and "model" in self.drafting.drafters


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    f.name: f.type for f in msgspec.structs.fields(Settings)
}
_ENV_PREFIX = "CODESPEC_"
# Environment variables that are not settings: folders, build choices, another program's.
_ENV_RESERVED = {
    "CODESPEC_CONFIG",
    "CODESPEC_BACKEND",
    "CODESPEC_CACHE_DIR",
    "CODESPEC_KERNELS",
    "CODESPEC_RUNTIME_DIR",
    "CODESPEC_SERVING",
}


def load_settings(
    options: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    config_file: Path | None = None,
) -> Settings:
    """Settings from all sources. `options`: {"section": {"key": value}}, e.g. from flags or LSP;
    None as a value stands for one that is not set.

    Raises: ConfigError for an unreadable file, unknown key, or value of the wrong type or out
        of its range.
    """
    values = {key: value for key, (value, _) in _resolve(options, env, config_file).items()}
    merged: dict[str, dict[str, Any]] = {}
    for (section, key), value in values.items():
        merged.setdefault(section, {})[key] = value
    return msgspec.convert(merged, Settings, strict=False)


def origins(options: Mapping[str, Any] | None = None) -> dict[tuple[str, str], str]:
    """(section, key) -> origin of its value, for every setting that has no default value.

    Raises: ConfigError as `load_settings`.
    """
    found = _resolve(options, None, None)
    return {key: origin for key, (_, origin) in found.items()}


def _resolve(
    options: Mapping[str, Any] | None, env: Mapping[str, str] | None, config_file: Path | None
) -> dict[tuple[str, str], tuple[Any, str]]:
    """(section, key) -> (value, origin) of what any source sets; the last source wins."""
    environ = os.environ if env is None else env
    path = config_file or config_path(environ)
    layers: list[tuple[str, Mapping[str, Any]]] = [(str(path), _read_toml(path, environ))]
    layers.append(("the environment", _read_env(environ)))
    layers.append(("the options", options or {}))
    found: dict[tuple[str, str], tuple[Any, str]] = {}
    for origin, layer in layers:
        for section, values in layer.items():
            if section not in _SECTIONS:
                raise _unknown(origin, section, list(_SECTIONS))
            if not isinstance(values, Mapping):
                raise ConfigError(
                    f"{origin}: {section} must be a table of settings",
                    f"Write its keys below a line [{section}].",
                )
            known = {f.name: f.type for f in msgspec.structs.fields(_SECTIONS[section])}
            for key, said in values.items():
                if key not in known:
                    raise _unknown(origin, key, list(known), f"{section}.")
                if said is None:
                    continue
                is_word = isinstance(said, str) and get_origin(limits.base_of(known[key])) is tuple
                value = _read_list(said) if is_word else said
                try:
                    msgspec.convert({key: value}, _SECTIONS[section], strict=False)
                except msgspec.ValidationError as e:
                    allowed = limits.allowed(known[key])
                    why = f"needs to be {allowed}" if allowed else str(e).partition(" - at ")[0]
                    shown = f"{section}.{key} = {_clipped(repr(value))}"
                    hint = "" if allowed else next_step(e)
                    raise ConfigError(f"{origin}: {shown}: {why}", hint) from None
                found[section, key] = (value, origin)
    return found


def _clipped(text: str) -> str:
    """`text`, cut where it is long."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _unknown(origin: str, key: str, known: list[str], where: str = "") -> ConfigError:
    key = _clipped(key)
    near = difflib.get_close_matches(key, known, 1, 0.5)
    hint = f'Did you mean "{where}{near[0]}"?' if near else f"Known: {', '.join(sorted(known))}."
    return ConfigError(f'{origin}: unknown setting "{where}{key}"', hint)


def _read_toml(path: Path, env: Mapping[str, str]) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):  # the latter where HOME=/dev/null
        if env.get("CODESPEC_CONFIG"):
            raise ConfigError(
                f"{path}: no such file", "CODESPEC_CONFIG names it; unset it or create the file."
            ) from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as e:
        why = e.strerror if isinstance(e, OSError) else e  # which would name the file again
        raise ConfigError(f"{path}: {why}", "Mend or remove the file.") from None


def _read_env(env: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in env.items():
        if not name.startswith(_ENV_PREFIX) or name in _ENV_RESERVED:
            continue
        section, _, key = name.removeprefix(_ENV_PREFIX).lower().partition("_")
        if section not in _SECTIONS:
            raise _unknown(name, section, list(_SECTIONS))
        found.setdefault(section, {})[key] = value
    return found


def _read_list(value: str) -> list[str]:
    """The list in a text, as in the environment: words between commas, or JSON, as a word may hold
    a comma itself."""
    if value.startswith("["):
        with contextlib.suppress(ValueError):
            found: list[Any] = json.loads(value)
            if all(isinstance(v, str) for v in found):
                return found
    return [v.strip() for v in value.split(",") if v.strip()]


def config_path(env: Mapping[str, str] | None = None) -> Path:
    """Path of the user's settings file, which need not exist."""
    override = (os.environ if env is None else env).get("CODESPEC_CONFIG")
    if override:
        return Path(os.path.expanduser(override))
    return platformdirs.user_config_path("codespec") / "config.toml"
