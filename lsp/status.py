"""What the editor shows about us: the state of the daemon, or why there are no suggestions.

`didChangeStatus` {busy, kind, message} is the notification that editors know from other
completion servers.
"""

from __future__ import annotations

from collections.abc import Callable

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


class Status:
    """The one status of an editor window: an error of ours before a pause in the document at hand
    before the state of the daemon. Sent when it changes, so once for each cause."""

    def __init__(self, send: Callable[[dict[str, object]], None]) -> None:
        self._send = send
        self._sent: dict[str, object] = {}
        self._error: dict[str, object] | None = None
        self._paused: dict[str, object] | None = None
        self._state: dict[str, object] | None = None

    def state(self, change: StateChanged) -> None:
        self._state = status_of(change)
        self._show()

    def error(self, message: str) -> None:
        """Settings that cannot be used; "" once they can."""
        self._error = {"busy": False, "kind": "Error", "message": message} if message else None
        self._show()

    def paused(self, why: str) -> None:
        """No suggestions in the document at hand, and why; "" where there are."""
        message = f"paused: {why}"
        self._paused = {"busy": False, "kind": "Inactive", "message": message} if why else None
        self._show()

    def _show(self) -> None:
        status = self._error or self._paused or self._state
        if status and status != self._sent:
            self._sent = status
            self._send(status)


def status_of(change: StateChanged) -> dict[str, object]:
    """Parameters of the notification."""
    busy, kind, _ = _WORDS[change.state]
    return {"busy": busy, "kind": kind, "message": words_of(change)}


def words_of(change: StateChanged) -> str:
    words = _WORDS[change.state][2]
    detail = change.model if change.state == "ready" else change.reason
    if change.hint:
        detail = f"{detail}. {change.hint}"
    if change.state == "stopping":
        detail = ""
    if change.state == "loading" and change.progress:
        words = f"{words}, {100 * change.progress:.0f} %"
    return f"{words}: {detail}" if detail else words
