"""The user's models: the bundled pair, the list of added ones, and the defaults."""

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
from codespec.models import catalogue, provenance
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.models.split import files_of, parts
from codespec.system.files import write_atomically
from codespec.system.folders import data_dir, data_path, expanded, private_folder


class ListedModel(msgspec.Struct, frozen=True):
    """A model on the list. url: "" for a file that was here already; sha256: of a download."""

    path: str
    url: str = ""
    sha256: str = ""


BUNDLED = {
    "bundled": BUNDLED_TARGET,
    Path(BUNDLED_TARGET).stem: BUNDLED_TARGET,
    Path(BUNDLED_DRAFT).stem: BUNDLED_DRAFT,
}
"""Names of the bundled models -> name of their file in the installation."""


def downloads_folder() -> Path:
    """The folder of downloads, in the data folder, which is made if need be."""
    return data_dir() / "models"


def downloads_path() -> Path:
    """The folder of downloads; it need not exist."""
    return data_path() / "models"


def added() -> dict[str, ListedModel]:
    """Models on the list, by name. A list that cannot be read counts as empty: the files are still
    there."""
    try:
        return read_list()
    except ConfigError:
        return {}


def read_list() -> dict[str, ListedModel]:
    """Models on the list, by name. Raises: ConfigError for a list that cannot be read."""
    path = _list()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, ListedModel])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else e
        raise ConfigError(
            f"{path}: the list of models cannot be read ({why})",
            "Mend it, or delete it and add the models again: their files are still there.",
        ) from None


def leftovers() -> list[tuple[Path, str, bool]]:
    """Files in the folder of downloads that belong to no model on the list, above all interrupted
    downloads: (file, address it comes from or "", True if that is the whole address)."""
    if not downloads_path().is_dir():
        return []
    listed = {file for model in read_list().values() for file in files_of(Path(model.path))}
    files = sorted(file for kind in ("*.gguf", "*.part") for file in downloads_path().glob(kind))
    return [(file, *provenance.source_of(file)) for file in files if file not in listed]


def absolute_path(path: Path) -> str:
    """A file's absolute path, to be written down.

    Raises: InputError for a path that is not Unicode.
    """
    absolute = str(path.absolute())
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise InputError(f"{absolute!r}: its name is not UTF-8", "Rename it.") from None
    return absolute


def path_of(path: str) -> Path:
    """The path that a user's text means: "~" is the home folder, unless a file here is called so.

    Raises: ConfigError for the home folder of an unknown user.
    """
    return Path(path) if Path(path).is_file() else expanded(path)


def name_for(path: Path, url: str = "", name: str = "") -> str:
    """Name of a model file on the list: its own name, or `name`. url: address it will come from.

    Raises: InputError if another model has this name, or would lose its file to this one.
    """
    name, absolute = name or path.stem.lower(), absolute_path(path)
    if name in (Path(BUNDLED_TARGET).stem, Path(BUNDLED_DRAFT).stem):
        raise InputError(f"{name} is a model that comes with codespec", "Rename the file.")
    taken = added().get(name)
    if taken is None:
        return name
    is_other = bool(url and taken.url) and provenance.public_url(url) != provenance.public_url(
        taken.url
    )
    if taken.path != absolute or is_other:
        raise InputError(
            f"{name} is {taken.url if is_other else taken.path} already",
            f"Rename one of the files, or first: codespec models remove {name}",
        )
    return name


def add(path: Path, url: str = "", sha256: str = "", name: str = "") -> str:
    """Put a model file on the list; it stays where it lies. Returns: its name there, see
    `name_for`.

    Raises: InputError as `name_for`.
    """
    with _changing() as models:
        name = name_for(path, url, name)
        models[name] = ListedModel(absolute_path(path), provenance.public_url(url), sha256)
    return name


def remove(name: str) -> list[Path]:
    """Take a model off the list. Returns: its files, if they were downloaded and are now of no use.

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
    if not gone.url or not path.is_relative_to(downloads_folder()):
        return []
    for part in parts(gone.path):
        provenance.forget(Path(part))
    return files_of(path)


def find_listed(name: str) -> Path | None:
    """Path of a model on the list, even if the file is gone; None for a name that is not on it."""
    models = added()
    known = models.get(_listed_as(name, models))
    return Path(known.path) if known else None


def listed(name: str) -> Path | None:
    """Path of a model on the list, or of a bundled one by its name; None for another name."""
    file = BUNDLED.get(name)
    return bundled(file) if file is not None else find_listed(name)


def find(name: str) -> Path:
    """The file of a model by its name on the list or in the catalogue, or by its path.

    Raises: InputError if it is neither; ConfigError if the list cannot be read.
    """
    known = listed(name)
    # In full: it may go into the settings, which are read in other folders.
    path = known or path_of(name).absolute()
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


def set_default(section: str, key: str, value: str) -> Path:
    """Set `<section>.<key>` in the user's settings file; everything else in it stays. Returns: the
    file.

    Raises: ConfigError if the file cannot be read or written.
    """
    path = config_path()
    try:
        text = path.read_text("utf-8-sig") if path.exists() else ""
        document = tomlkit.parse(text)
        table = document.setdefault(section, tomlkit.table())
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {section} must be a table of settings", "Mend the file.")
        table[key] = value
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        file = Path(os.path.realpath(path))  # many keep it elsewhere, and a link to it here
        # The file's permissions are the user's choice.
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


def _listed_as(name: str, models: dict[str, ListedModel]) -> str:
    """Name on the list for a name of the catalogue: a model that was added by its name there is
    listed by its file's name."""
    entry = None if name in models else catalogue.by_name(name)
    return Path(entry.file).stem.lower() if entry else name


def _list() -> Path:
    return downloads_path() / "models.json"


@contextmanager
def _changing() -> Generator[dict[str, ListedModel]]:
    """The list, which is written when the caller is done with it. Other processes wait: their
    additions would be lost."""
    private_folder(downloads_folder())
    with filelock.FileLock(_list().with_suffix(".lock"), mode=0o600):
        models = read_list()  # or what it held would be lost
        yield models
        write_atomically(_list(), msgspec.json.format(msgspec.json.encode(models)))
