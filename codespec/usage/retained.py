"""How much of an accepted text is still there."""

from __future__ import annotations


def n_retained(accepted: str, now: str) -> int:
    """Number of characters of an accepted text that are left where it was inserted.

    now: the document's text around that place. Whole if it is there as it was; otherwise its lines
    that are, in order.
    """
    if accepted in now:
        return len(accepted)
    at = n = 0
    for line in accepted.splitlines():
        line = line.strip()
        found = now.find(line, at) if line else -1
        if found >= 0:
            at, n = found + len(line), n + len(line)
    return n
