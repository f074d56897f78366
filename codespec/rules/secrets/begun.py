"""Secrets that are being typed: the beginning of one looks like nothing yet.

A text ends in one if it would hold a secret there, were it to go on with random characters; or if
its last word begins as tokens of a known form do.
"""

from __future__ import annotations

import re
import string
from functools import cache

from codespec.rules.secrets import keys
from codespec.rules.secrets.find import beginnings, find
from codespec.rules.secrets.forms import PREFIXES
from codespec.rules.secrets.values import is_wordy

_NEAR = 600
"""Characters before the end in which a secret of one line begins, with the name that it is given
to."""
_RANDOM = "x7Qz9Kd2Lm4Vt8Rw1Yb3Hn6Js"
_GOES_ON = (_RANDOM, "4e7f1a9c0b3d8265e1f7a0c94b2d6838")
"""Random characters: of any kind, and of hexadecimal numbers."""
_IN_ADDRESS = f"{_RANDOM}@x"
"""Random characters as before the host of an address."""
_KEY_ID = re.compile(r"A[KS]IA[0-9A-Z]{16}", re.ASCII)
_KEY_CHARS, _KEY_LETTERS = 40, f"{string.ascii_letters}{string.digits}+/"
"""Characters of the secret that belongs to such an id."""
_HOST = re.compile(r"://(?:localhost|\d[\d.]*)(?::\d*)?\Z", re.ASCII)
"""An address in which the host is there already, by name or number, and maybe its port."""
_WORDS = re.compile(r"(?![a-f]*\Z)[a-z_.-]+")
_FEW = 4
"""Most characters of a token's rest that tell nothing of it."""


@cache
def _begun() -> re.Pattern[str]:
    known = "|".join((*PREFIXES, *beginnings()))
    return re.compile(
        rf"(?<![0-9A-Za-z])(?:{known})(?P<rest>[\w.:%+/=~-]{{0,{_NEAR}}})\Z", re.ASCII
    )


def in_secret(text: str) -> bool:
    """True if the end of a text is in a secret, however little of it is there."""
    near = text[-_NEAR:]
    begun = _begun().search(near)
    rest = begun["rest"] if begun is not None else ""
    is_word = _WORDS.fullmatch(rest) is not None and is_wordy(rest)  # `npm_config`
    if begun is not None and begun[0][0].isdigit():  # no word follows a bot's number
        is_word = False
    if len(rest) >= _FEW and not is_word:
        return True
    long = text[-keys.MAX_CHARS :]
    if any(word in long.lower() for word in keys.WORDS):
        near = long
    goes_on = _GOES_ON if _HOST.search(near) else (*_GOES_ON, _IN_ADDRESS)
    if _KEY_ID.search(near):
        n_typed = len(near) - len(near.rstrip(_KEY_LETTERS))
        goes_on = (*goes_on, (2 * _RANDOM)[: max(0, _KEY_CHARS - n_typed)])
    return any(
        start < len(near) < end
        for more in goes_on
        for start, end, rule in find(near + more)
        if rule.startswith("assigned-") or not (is_word or rule == "token-in-parts")
    )
