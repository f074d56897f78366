"""A user who types edits of a Git history again in an editor, and what the editor then sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .editor import Editor, Reply
from .history import Commit, History, Hunk
from .keystrokes import KEY_S, Stroke, strokes

READ_S = 0.4
"""A suggestion that was in view so long, typed along or not, is read; if all of it is what is to be
typed, it is taken. Who has taken one looks so long for the next one, and reads that, too."""


@dataclass
class Seen:
    """Outcome of the keys; times in milliseconds.

    suggestion:    from the request to a suggestion that the model made for it.
    visible:       the same from the key, the editor's own pause included; kept ones, too.
    next:          from a suggestion that was taken to the next one in view.
    typed_through: from the request to a suggestion that was there before.
    overhead:      of `suggestion`, what was spent outside of the engine.
    nothing:       from the request to the answer that there is nothing.
    n_unanswered:  requests that the next key came before; n_swallowed: keys without a request,
                   since the next one came within the editor's pause.
    n_accepted:    suggestions that were taken, n_accepted_chars long in all.
    """

    suggestion: list[float] = field(default_factory=list[float])
    visible: list[float] = field(default_factory=list[float])
    next: list[float] = field(default_factory=list[float])
    typed_through: list[float] = field(default_factory=list[float])
    overhead: list[float] = field(default_factory=list[float])
    nothing: list[float] = field(default_factory=list[float])
    n_keys: int = 0
    n_requests: int = 0
    n_unanswered: int = 0
    n_swallowed: int = 0
    n_accepted: int = 0
    n_accepted_chars: int = 0


class TypedWorkspace:
    """A folder with the files of a history as they were before each of its commits."""

    def __init__(self, folder: Path, history: History) -> None:
        self._folder = folder
        self._history = history
        self._tree: dict[str, str] = {}

    def check_out(self, commit: Commit) -> None:
        """Only what differs is written."""
        for path in self._tree.keys() - commit.tree.keys():
            (self._folder / path).unlink(missing_ok=True)
        for path, blob in commit.tree.items():
            if self._tree.get(path) != blob:
                file = self._folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(self._history.blob(blob), "utf-8", newline="")
        self._tree = commit.tree


class Typist:
    """Types into one document at a time.

    debounce_s: how long the editor waits after a key before it asks.
    pace:       factor of all pauses between keys.
    """

    def __init__(self, editor: Editor, folder: Path, debounce_s: float, pace: float = 1.0) -> None:
        self.seen = Seen()
        self._editor = editor
        self._folder = folder
        self._debounce_s = debounce_s
        self._pace = pace
        self._uri = self._before = self._after = ""
        self._version = 0
        self._shown: Reply | None = None
        self._shown_since = 0.0

    def write(
        self, commits: Sequence[Commit], workspace: TypedWorkspace, n_keys: int,
        progress: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Until `n_keys` keys were pressed, or nothing is left."""
        for n_commit, commit in enumerate(commits):
            self._close()
            workspace.check_out(commit)
            for n_hunk, hunk in enumerate(commit.hunks):
                progress(self.seen.n_keys)
                self.go_to(hunk)
                self._type(hunk, list(strokes(hunk, 1000 * n_commit + n_hunk)), n_keys)
                if self.seen.n_keys >= n_keys:
                    return

    def go_to(self, hunk: Hunk) -> None:
        """The cursor on an empty line in place of what the hunk replaces."""
        uri = (self._folder / hunk.path).as_uri()
        text = hunk.prefix + hunk.removed + hunk.suffix
        if uri != self._uri or self._before + self._after != text:
            self._close()
            self._uri, self._version = uri, 1
            self._editor.open(uri, text)
        self._before, self._after = hunk.prefix + hunk.removed, hunk.suffix
        self._edit(len(hunk.removed), "\n")
        self._before, self._after = hunk.prefix, "\n" + hunk.suffix

    def ask(self, *, invoked: bool = False) -> int:
        line, character = _position(self._before)
        return self._editor.ask(self._uri, line, character, invoked)

    def _type(self, hunk: Hunk, keys: Sequence[Stroke], n_keys: int) -> None:
        text = hunk.text.removesuffix("\n")
        self._shown = None
        due = time.perf_counter() + keys[0].pause_s * self._pace
        done = 0
        pauses = [*(key.pause_s for key in keys[1:]), KEY_S]
        for key, pause_s in zip(keys, pauses, strict=True):
            if key.end <= done:
                continue  # came with a suggestion
            _sleep_until(due)
            accepted = self._accept(text[key.at :]) if key.at >= done else 0
            if accepted:
                done = key.at + accepted
                due = self._see_next(text[done:])
                continue
            if key.wrong:
                due = self._press(0, key.wrong, due, KEY_S)
                due = self._press(1, "", due, KEY_S)
            due = self._press(0, text[max(key.at, done) : key.end], due, pause_s)
            done = key.end
            if self.seen.n_keys >= n_keys:
                break
        # The rest, so that the document is as the next hunk expects it.
        self._edit(0, text[done:])

    def _press(self, n_back: int, text: str, due: float, pause_s: float) -> float:
        """One key now, and its answer up to the next one. Returns: when the next one is due."""
        _sleep_until(due)
        pressed = time.perf_counter()
        following = pressed + pause_s * self._pace
        before, self._shown = self._shown, None
        self._edit(n_back, text)
        self.seen.n_keys += 1
        if pressed + self._debounce_s >= following:
            self.seen.n_swallowed += 1
            return following
        reply = self._see(pressed, following)
        if reply is not None:
            self.seen.visible.append((reply.at - pressed) * 1e3)
            if before is None or not reply.answer.is_kept:
                self._shown_since = reply.at
        return following

    def _see_next(self, rest: str) -> float:
        """Wait for the suggestion after one that was taken just now. Returns: when the next key is
        due, if there is anything left to type."""
        taken = time.perf_counter()
        if not rest:
            return taken + KEY_S * self._pace
        reply = self._see(taken, taken + READ_S * self._pace)
        if reply is None:
            return taken + READ_S * self._pace
        self._shown_since = reply.at
        self.seen.next.append((reply.at - taken) * 1e3)
        return reply.at + READ_S * self._pace

    def _see(self, since: float, until: float) -> Reply | None:
        """Asks, once the editor's pause is over, and shows what comes in time."""
        seen = self.seen
        _sleep_until(since + self._debounce_s)
        asked = time.perf_counter()
        request = self.ask()
        seen.n_requests += 1
        reply = self._editor.reply_by(request, until)
        if reply is None:
            seen.n_unanswered += 1
            self._editor.cancel(request)
            return None
        ms = (reply.at - asked) * 1e3
        if not reply.items:
            seen.nothing.append(ms)
            return None
        self._shown = reply
        answer = reply.answer
        if answer.is_kept:
            seen.typed_through.append(ms)
        else:
            seen.suggestion.append(ms)
            if answer.is_made:
                left_ms = answer.engine_ms - answer.ahead_ms
                if left_ms >= 0:  # of what was done before the request, nobody knows
                    seen.overhead.append(ms - left_ms)
        return reply

    def _accept(self, rest: str) -> int:
        """Take what is shown, if it was read and says what is to be typed; its length."""
        shown = self._shown
        if shown is None or time.perf_counter() - self._shown_since < READ_S * self._pace:
            return 0
        text, item = shown.items[0]
        if not rest.startswith(text):
            return 0
        self._shown = None
        self._editor.accept(item)
        self._edit(0, text)
        self.seen.n_accepted += 1
        self.seen.n_accepted_chars += len(text)
        return len(text)

    def _edit(self, n_back: int, text: str) -> None:
        """Replace the last characters before the cursor."""
        kept = self._before[: len(self._before) - n_back]
        self._version += 1
        self._editor.replace(
            self._uri, self._version, _position(kept), _position(self._before), text
        )
        self._before = kept + text

    def _close(self) -> None:
        if self._uri:
            self._editor.shut(self._uri)
            self._uri = ""


def _position(before: str) -> tuple[int, int]:
    """(line, character in units of UTF-16) of the end of a text."""
    last = before.rpartition("\n")[2]
    return before.count("\n"), len(last.encode("utf-16-le")) // 2


def _sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - time.perf_counter()))
