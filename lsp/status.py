"""The status that the editor shows: the daemon's state, or the reason for no suggestions.

`didChangeStatus` {busy, kind, message} is the notification that editors know from other
completion servers; `suggestion` is true, in ours alone, where one is ready for whom asks.
"""

from __future__ import annotations

from collections.abc import Callable

from codespec.daemon.wire import State, StateChanged
from codespec.system.power import SAVING

NOTIFICATION = "didChangeStatus"

_WORDS: dict[State, tuple[bool, str, str]] = {
    "starting": (True, "Normal", "starting the daemon"),
    "loading": (True, "Normal", "loading the model"),
    "ready": (False, "Normal", "ready"),
    "restarting": (True, "Warning", "starting the model again"),
    "failed": (False, "Error", "no completions"),
    "stopping": (False, "Inactive", "the daemon was stopped"),
}


class StatusReporter:
    """The one status of an editor window: an error in the settings first, then a pause in the
    document at hand, then the daemon's state. Sent when it changes, so once for each cause."""

    def __init__(self, send: Callable[[dict[str, object]], None]) -> None:
        self._send = send
        self._sent: dict[str, object] = {}
        self._error: dict[str, object] | None = None
        self._paused: dict[str, object] | None = None
        self._state: dict[str, object] | None = None
        self._is_ready = self._saves = False

    def state(self, change: StateChanged) -> None:
        """The daemon's state changed."""
        self._state = status_of(change)
        self._show()

    def error(self, message: str) -> None:
        """The settings cannot be used, for this reason; "" once they can."""
        self._error = {"busy": False, "kind": "Error", "message": message} if message else None
        self._show()

    def paused(self, why: str) -> None:
        """The document at hand gets no suggestions, for this reason; "" where it does."""
        message = f"paused: {why}"
        self._paused = {"busy": False, "kind": "Inactive", "message": message} if why else None
        self._show()

    def ready(self, is_ready: bool) -> None:
        """A suggestion is ready for whom asks, at the cursor; or none is any more."""
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            self._show()

    def saving(self, saves: bool) -> None:
        """Power is to be saved, or not."""
        if saves != self._saves:
            self._saves = saves
            self._show()

    def _now(self) -> dict[str, object] | None:
        status = self._error or self._paused or self._state
        if status is None or status is not self._state:
            return status
        kind = status["kind"]
        if self._is_ready and kind in ("Normal", "Warning"):
            return {**status, "message": "a suggestion is ready", "suggestion": True}
        if self._saves and kind == "Normal":
            return {**status, "message": f"{status['message']}; {SAVING}"}
        return status

    def _show(self) -> None:
        status = self._now()
        if status and status != self._sent:
            self._sent = status
            self._send(status)


def status_of(change: StateChanged) -> dict[str, object]:
    """Params of the notification."""
    busy, kind, _ = _WORDS[change.state]
    if change.state == "ready" and change.reason:
        kind = "Warning"
    return {"busy": busy, "kind": kind, "message": words_of(change)}


def words_of(change: StateChanged) -> str:
    """The daemon's state in a sentence for people."""
    words = _WORDS[change.state][2]
    detail = change.reason
    if change.state == "ready":
        detail = f"{change.model}; {detail}" if detail else change.model
    if change.hint:
        detail = f"{detail}. {change.hint}"
    if change.state == "stopping":
        detail = ""
    if change.state == "loading" and change.progress:
        words = f"{words}, {100 * change.progress:.0f} %"
    return f"{words}: {detail}" if detail else words
