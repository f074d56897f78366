"""What the editor shows about us: the state of the daemon in words.

`didChangeStatus` {busy, kind, message} is the notification that editors know from other
completion servers.
"""

from __future__ import annotations

from codespec.daemon.wire import State, StateChanged

NOTIFICATION = "didChangeStatus"

_WORDS: dict[State, tuple[bool, str, str]] = {
    "starting": (True, "Normal", "starting the daemon"),
    "loading": (True, "Normal", "loading the model"),
    "ready": (False, "Normal", "ready"),
    "restarting": (True, "Warning", "starting the model again"),
    "failed": (False, "Error", "no completions"),
    "stopping": (False, "Inactive", "the daemon was stopped"),
}


def status_of(change: StateChanged) -> dict[str, object]:
    """Parameters of the notification."""
    busy, kind, words = _WORDS[change.state]
    detail = change.model if change.state == "ready" else change.reason
    if change.state == "stopping":
        detail = ""
    return {"busy": busy, "kind": kind, "message": f"{words}: {detail}" if detail else words}


def error_status(message: str) -> dict[str, object]:
    return {"busy": False, "kind": "Error", "message": message}
