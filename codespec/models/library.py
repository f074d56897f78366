"""The models a user has: the bundled pair, what was added, and the defaults."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import filelock
import msgspec
import tomlkit
import tomlkit.exceptions

from codespec.config import config_path
from codespec.errors import ConfigError, InputError
from codespec.files import write_atomically
from codespec.folders import data_dir, data_path, expanded, private_folder
from codespec.models import catalogue, provenance
from codespec.models.registry import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.models.split import files_of, parts


class Added(msgspec.Struct, frozen=True):
    """A model somebody added. url: "" for a file that was here already; sha256 of a download."""

    path: str
    url: str = ""
    sha256: str = ""


BUNDLED = {
    "bundled": BUNDLED_TARGET,
    Path(BUNDLED_TARGET).stem: BUNDLED_TARGET,
    Path(BUNDLED_DRAFT).stem: BUNDLED_DRAFT,
}
"""Names of what comes with the installation, and goes where that goes."""


def folder() -> Path:
    """Where downloads go."""
    return data_dir() / "models"


def folder_path() -> Path:
    """That folder, for those who only look: it need not exist."""
    return data_path() / "models"


def added() -> dict[str, Added]:
    """By name. A list that cannot be read counts as empty: the files are still there."""
    try:
        return read_list()
    except ConfigError:
        return {}


def read_list() -> dict[str, Added]:
    """As `added`. Raises: ConfigError for a list that cannot be read."""
    path = _list()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Added])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else e
        raise ConfigError(
            f"{path}: the list of models cannot be read ({why})",
            "Mend it, or delete it and add the models again: their files are still there.",
        ) from None


def leftovers() -> list[tuple[Path, str, bool]]:
    """(file, address it comes from, "" where nobody knows, whether that is the whole of it) of what
    lies where downloads go and belongs to no model on the list: what was interrupted, above all."""
    if not folder_path().is_dir():
        return []
    listed = {file for model in read_list().values() for file in files_of(Path(model.path))}
    files = sorted(file for kind in ("*.gguf", "*.part") for file in folder_path().glob(kind))
    return [(file, *provenance.source_of(file)) for file in files if file not in listed]


def in_full(path: Path) -> str:
    """A file's whole path, to be written down.

    Raises: InputError for one that is no text.
    """
    absolute = str(path.absolute())
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise InputError(f"{absolute!r}: its name is not UTF-8", "Rename it.") from None
    return absolute


def given(path: str) -> Path:
    """A file as somebody names it: "~" is the home folder, unless a file here is called so.

    Raises: ConfigError for that of a user who is not there.
    """
    return Path(path) if Path(path).is_file() else expanded(path)


def name_for(path: Path, url: str = "", name: str = "") -> str:
    """What a model file is to be called on the list: its own name, or `name`. url: where it is to
    come from.

    Raises: InputError where another model has this name, or would lose its file to this one.
    """
    name, absolute = name or path.stem.lower(), in_full(path)
    if name in (Path(BUNDLED_TARGET).stem, Path(BUNDLED_DRAFT).stem):
        raise InputError(f"{name} is a model that comes with codespec", "Rename the file.")
    taken = added().get(name)
    if taken is None:
        return name
    is_other = bool(url and taken.url) and provenance.public(url) != provenance.public(taken.url)
    if taken.path != absolute or is_other:
        raise InputError(
            f"{name} is {taken.url if is_other else taken.path} already",
            f"Rename one of the files, or first: codespec models remove {name}",
        )
    return name


def add(path: Path, url: str = "", sha256: str = "", name: str = "") -> str:
    """Puts a model file on the list, where it lies; returns its name there, see `name_for`.

    Raises: InputError as `name_for`.
    """
    with _changing() as models:
        name = name_for(path, url, name)
        models[name] = Added(in_full(path), provenance.public(url), sha256)
    return name


def remove(name: str) -> list[Path]:
    """Takes a model off the list. Returns its files if they were downloaded and are now of no use.

    Raises: InputError for an unknown name.
    """
    if name in (Path(BUNDLED_TARGET).stem, Path(BUNDLED_DRAFT).stem):
        raise InputError(f"{name} belongs to codespec", "Only models that were added are removed.")
    with _changing() as models:
        gone = models.pop(_listed_as(name, models), None)
        if gone is None:
            raise InputError(
                f"{name}: no model of that name was added", "See: codespec models list"
            )
    path = Path(gone.path)
    if not gone.url or not path.is_relative_to(folder()):
        return []
    for part in parts(gone.path):
        provenance.forget(Path(part))
    return files_of(path)


def find_listed(name: str) -> Path | None:
    """Where a model on the list is, or was; None for a name that is not there."""
    models = added()
    known = models.get(_listed_as(name, models))
    return Path(known.path) if known else None


def listed(name: str) -> Path | None:
    """As `find_listed`, and the bundled ones by theirs."""
    file = BUNDLED.get(name)
    return bundled(file) if file is not None else find_listed(name)


def find(name: str) -> Path:
    """The file of a model by its name on the list or in the catalogue, or by its path.

    Raises: InputError when it is neither; ConfigError where the list cannot be read.
    """
    known = listed(name)
    # In full: it may go into the settings, which are read in other folders.
    path = known or given(name).absolute()
    if known and not path.is_file():
        raise InputError(f"{name}: {path} is gone", f"Forget it: codespec models remove {name}")
    if not path.is_file():
        read_list()  # or it is said what is wrong with that
        if catalogue.by_name(name):
            raise InputError(f"{name} is not here yet", f"Get it: codespec models add {name}")
        raise InputError(
            f"{name}: no such model", "See: codespec models list; or give a .gguf file."
        )
    return path


def set_default(key: str, value: str) -> Path:
    """Sets `model.<key>` in the user's settings file, everything else in it untouched.

    Raises: ConfigError when the file cannot be read or written.
    """
    path = config_path()
    try:
        text = path.read_text("utf-8-sig") if path.exists() else ""
        document = tomlkit.parse(text)
        section = document.setdefault("model", tomlkit.table())
        if not isinstance(section, dict):
            raise ConfigError(f"{path}: model must be a table of settings", "Mend the file.")
        section[key] = value
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        file = Path(os.path.realpath(path))  # many keep it elsewhere, and a link to it here
        # Who may read it is the user's to say.
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
        write_atomically(file, tomlkit.dumps(document).encode(), mode)
    except OSError as e:
        raise ConfigError(
            f"{e.filename or path}: {e.strerror}",
            f"See that {path} can be written, or set CODESPEC_CONFIG to another file.",
        ) from None
    except (UnicodeDecodeError, tomlkit.exceptions.TOMLKitError) as e:
        raise ConfigError(f"{path}: {e}", "Mend or remove the file.") from None
    return path


def _listed_as(name: str, models: dict[str, Added]) -> str:
    """The catalogue has names of its own: what is added by one is listed by its file's."""
    entry = None if name in models else catalogue.by_name(name)
    return Path(entry.file).stem.lower() if entry else name


def _list() -> Path:
    return folder_path() / "models.json"


@contextmanager
def _changing() -> Generator[dict[str, Added]]:
    """The list, to be written when the caller is done with it; others wait, as what they add would
    be lost."""
    private_folder(folder())
    with filelock.FileLock(_list().with_suffix(".lock"), mode=0o600):
        models = read_list()  # or what it held would be lost
        yield models
        write_atomically(_list(), msgspec.json.format(msgspec.json.encode(models)))
