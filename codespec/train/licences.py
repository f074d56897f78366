"""Which source may be trained on: permissive licences only, read from a package's own metadata;
unknown is refused.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution
from pathlib import Path

PERMISSIVE = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BlueOak-1.0.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSD-4-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "NCSA",
        "PSF-2.0",
        "Python-2.0",
        "Python-2.0.1",
        "Unlicense",
        "X11",
        "Zlib",
        "ZPL-2.0",
        "ZPL-2.1",
    ]
)

# Licence names as package authors write them, in lower case without punctuation, and their SPDX
# identifiers.
FREE_TEXT = {
    "apache 2 0": "Apache-2.0",
    "apache license 2 0": "Apache-2.0",
    "apache license version 2 0": "Apache-2.0",
    "apache 2 0 license": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "3 clause bsd license": "BSD-3-Clause",
    "bsd 2 clause": "BSD-2-Clause",
    "bsd 3 clause": "BSD-3-Clause",
    "isc": "ISC",
    "isc license": "ISC",
    "isc license iscl": "ISC",
    "mit": "MIT",
    "mit license": "MIT",
    "python software foundation license": "PSF-2.0",
    "zlib libpng license": "Zlib",
    "zope public license": "ZPL-2.1",
}


def permissive_expression(expression: str) -> bool:
    """True if the SPDX expression can be met with permissive licences alone.

    Of a plain OR one permissive licence is enough; wherever AND occurs, every licence must be one.
    Exceptions (WITH), licence references and anything else are unknown, and so refused.
    """
    terms = re.split(r"\s+(?:AND|OR)\s+", expression.strip())
    known = [term.strip("() ") in PERMISSIVE for term in terms]
    return all(known) or (any(known) and " AND " not in expression)


def from_free_text(text: str) -> str | None:
    """The SPDX identifier of a licence field written by hand, None if not surely permissive."""
    if permissive_expression(text):
        return text.strip()
    return FREE_TEXT.get(re.sub(r"[^a-z0-9]+", " ", text.lower()).strip())


def of_distribution(distribution: Distribution) -> str | None:
    """Licence of an installed Python distribution, None if it is unknown or not permissive.

    The SPDX expression decides where there is one; else every licence classifier must be
    permissive; else the field.
    """
    metadata = distribution.metadata
    expressions = metadata.get_all("License-Expression")
    if expressions:
        return expressions[0] if permissive_expression(expressions[0]) else None
    fields = metadata.get_all("License") or [""]
    classifiers = [
        entry.split("::")[-1].strip()
        for entry in metadata.get_all("Classifier") or []
        if entry.startswith("License ::")
    ]
    named = [c for c in classifiers if c != "OSI Approved"]
    if named:
        found = [from_free_text(name) for name in named]
        return " AND ".join(sorted({f for f in found if f})) if all(found) else None
    return from_free_text(fields[0])


def of_npm_package(folder: Path) -> tuple[str, str, str | None]:
    """(name, version, licence or None) of a folder with a package.json. Raises: OSError, ValueError
    if unreadable.
    """
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    if not isinstance(manifest, dict) or "name" not in manifest:
        raise ValueError(f"{folder}: package.json names no package")
    licence = manifest.get("license")
    spdx = from_free_text(licence.strip("() ")) if isinstance(licence, str) else None
    return str(manifest["name"]), str(manifest.get("version", "")), spdx
