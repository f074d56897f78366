"""Values that look like secrets, found in a text so that they can be cut out of it.

Everything that stores text, drafts from it, or shows it to a model beside the document at hand asks
`find`, and uses what is left: the rest of a file stays useful. Files that are nothing but secrets
are known by their names (`names.py`) and stay out whole.

The known forms are those of gitleaks (`gitleaks.toml`, MIT, see `gitleaks.LICENSE`); `forms.py` has
what it lacks, `assigned.py` what is given to a name such as `password`.
"""

from __future__ import annotations

from codespec.rules.secrets.begun import in_secret
from codespec.rules.secrets.find import SecretValue, find, masked, spans_left, without_secrets
from codespec.rules.secrets.secret_files import SECRET_FOLDERS, secret_name

VERSION = 2
"""Version of the rules. Raise it with every change of the values that count as secrets, or of their
treatment: results made from text under other rules are not used any more."""

__all__ = [
    "SECRET_FOLDERS",
    "VERSION",
    "SecretValue",
    "find",
    "in_secret",
    "masked",
    "secret_name",
    "spans_left",
    "without_secrets",
]
