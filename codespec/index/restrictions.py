"""What a workspace asks for in its `.codespec.toml`: less, never more.

    enabled = false                         # nothing here is completed, indexed or drafted from
    disabled_languages = ["markdown"]
    exclude = ["vendor/", "*.sql"]          # patterns as in .gitignore

A file that cannot be understood switches everything off below its folder: what it meant to exclude
must not be read by mistake.
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

RESTRICTIONS_FILE = ".codespec.toml"
MAX_BYTES = 1 << 14
"""The parser takes time that is quadratic in the parts of a key: a second for so many."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    disabled_languages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restrictions:
    """`why_off`: why nothing below the folder may be used, "" when it may."""

    why_off: str = ""
    disabled_languages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def parse_restrictions(data: bytes) -> Restrictions:
    """Never raises: see the module."""
    if len(data) > MAX_BYTES:
        return Restrictions(f"{RESTRICTIONS_FILE}: longer than {MAX_BYTES:,} bytes")
    try:
        found = tomllib.loads(data.decode("utf-8"))
        known = [f.name for f in msgspec.structs.fields(_File)]
        for key in found:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.5)
                hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
                return Restrictions(f'{RESTRICTIONS_FILE}: unknown key "{key}", {hint}')
        file = msgspec.convert(found, _File)
    # ValueError: no UTF-8, no TOML, or a number of more digits than Python reads.
    except (ValueError, msgspec.ValidationError) as e:
        return Restrictions(f"{RESTRICTIONS_FILE}: {e}")
    except RecursionError:
        return Restrictions(f"{RESTRICTIONS_FILE}: nested too deeply")
    why = "" if file.enabled else f"switched off in {RESTRICTIONS_FILE}"
    return Restrictions(why, file.disabled_languages, file.exclude)
