"""Restrictions of a workspace, from its `.codespec.toml`: it may ask for less, never for more.

    enabled = false                         # nothing here is completed, indexed or drafted from
    disabled_languages = ["markdown"]
    exclude = ["vendor/", "*.sql"]          # patterns as in .gitignore
    trigger = "manual"                      # and every other point of a `Restraint`

    [edits]
    enabled = false                         # and every other point of an `EditRestraint`

A file that cannot be understood switches everything off below its folder: what it meant to exclude
must not be read by mistake.
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass

import msgspec

from codespec.restraint import (
    NO_EDIT_RESTRAINT,
    NO_RESTRAINT,
    EditRestraint,
    Restraint,
    strictest,
)

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

RESTRICTIONS_FILE = ".codespec.toml"
MAX_BYTES = 1 << 14
"""Most bytes of a file. The parser takes time that is quadratic in the parts of a key: a second for
so many."""


class _File(Restraint, frozen=True, forbid_unknown_fields=True, kw_only=True):
    enabled: bool = True
    disabled_languages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    edits: EditRestraint = NO_EDIT_RESTRAINT


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Content of one `.codespec.toml`. why_off: why nothing below the folder may be used, "" if it
    may."""

    why_off: str = ""
    disabled_languages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    restraint: Restraint = NO_RESTRAINT
    edits: EditRestraint = NO_EDIT_RESTRAINT


def parse_restrictions(data: bytes) -> Restrictions:
    """Restrictions in the bytes of a file. Never raises: a file that cannot be understood gives
    `why_off`."""
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
    return Restrictions(why, file.disabled_languages, file.exclude, strictest(file), file.edits)
