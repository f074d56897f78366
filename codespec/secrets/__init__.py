"""Values that look like secrets, found in a text so that they can be cut out of it.

Everything that stores text, drafts from it, or shows it to a model beside the document at hand asks
`find`, and uses what is left: the rest of a file stays useful. Files that are nothing but secrets
are known by their names (`names.py`) and stay out whole.

The known forms are those of gitleaks (`gitleaks.toml`, MIT, see `gitleaks.LICENSE`); `forms.py` has
what it lacks, `assigned.py` what is given to a name such as `password`.
"""

from __future__ import annotations

from codespec.secrets.find import Finding, find, kept, masked, without
from codespec.secrets.names import SECRET_FOLDERS, secret_name

VERSION = 1
"""To be raised with every change of what counts as a secret, or of what becomes of one: what was
made of text under other rules is not used any more."""

__all__ = [
    "SECRET_FOLDERS",
    "VERSION",
    "Finding",
    "find",
    "kept",
    "masked",
    "secret_name",
    "without",
]
