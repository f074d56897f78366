"""Which words of a text may be names that the workspace defines."""

from __future__ import annotations

import re

# A name may begin with "#" in JavaScript, and end with "?" or "!" in Ruby. What is shorter is
# defined anywhere.
_WORD = re.compile(r"#?\b\w{3,}[?!]?")


def names_in(text: str) -> list[str]:
    """Each once, the one used last first."""
    found: dict[str, None] = {}
    for word in _WORD.findall(text):
        for name in (word, word.strip("#?!")):
            found.pop(name, None)
            found[name] = None
    return list(found)[::-1]
