"""Findings that hold for every model: its kind, and what its speed means for suggestions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codespec.cli.doctor.findings import Finding
from codespec.config import CompletionSettings

_INSTRUCT = re.compile(r"instruct|chat|\bit\b|assistant", re.IGNORECASE)
LINE_TOKENS = 12
"""Tokens of a line of code that is suggested."""


def kind(name: str, fim: bool) -> Iterator[Finding]:
    """Findings on what a model was made for. fim: True if it fills in the middle."""
    if fim:
        yield Finding("model", "ok", "it can fill in the middle: text after the cursor counts")
    else:
        yield Finding(
            "model",
            "warning",
            "it cannot fill in the middle: suggestions ignore the text after the cursor",
            "Choose a code model with fill-in-the-middle markers.",
        )
    if _INSTRUCT.search(name):
        yield Finding(
            "model",
            "warning",
            "by its name it is made for conversation, which completes code worse",
            "Choose the base model of the same family.",
        )


def in_time(
    limits: CompletionSettings, line_ms: float, cold_ms: float, meaning: str, instead: str | None
) -> Finding:
    """Finding on the deadline: an unasked suggestion that takes longer is not shown."""
    soon_ms, names = limits.deadline_auto_ms, "completion.deadline_auto_ms"
    last_ms = soon_ms
    if limits.show_late:
        last_ms, names = soon_ms + limits.linger_ms, f"{names} + linger_ms"
    if line_ms > last_ms:
        return Finding(
            "model",
            "warning",
            f"{meaning}: more than {names} = {last_ms:.0f}",
            instead
            or "Choose a smaller model, raise the deadline, or ask by key (deadline_invoked_ms).",
        )
    if line_ms > soon_ms:
        return Finding(
            "model",
            "note",
            f"{meaning}: suggestions come late, where you pause",
            instead
            or "A smaller model is quicker; with completion.show_late = false none comes after "
            f"{soon_ms:.0f} ms.",
        )
    if cold_ms > last_ms:
        return Finding(
            "model",
            "note",
            f"{meaning}; the first one in a file comes too late, and is kept for the next key",
            "A smaller completion.max_read_ms or n_prefix_tokens makes it faster.",
        )
    return Finding("model", "ok", meaning)
