"""A model worker without a model, for fault injection: the real `codespec.daemon.worker`, and an
engine that does what the text before the cursor says. Run as a script by the supervisor.

    scripted_worker.py LOAD [FILE]     how loading goes: ok, refuse (as long as there is no FILE),
                                       die, crash (in native code), assert (llama.cpp fails to),
                                       garbage, wait (for FILE), spin
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from codespec.config import Settings
from codespec.daemon import wire, worker
from codespec.edit import Edit
from codespec.errors import ModelError
from codespec.next_edit import NextEdit, NextEditRequest, NextEdits, NoNextEdit
from codespec.requests import Completion, CompletionRequest, OnProgress, Paused, Progress
from codespec.system import pulse

SCRIPT = str(Path(__file__))


class ScriptedEngine:
    def __init__(self) -> None:
        self._closed: list[str] = []
        self._read_ahead: list[str] = []
        self._n_dismissed = 0

    def closed(self, path: str) -> None:
        self._closed.append(path)

    def completing(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
        paused: Paused = lambda has_progressed: False,
    ) -> Generator[None, None, Completion]:
        """ "until paused N": that often; all else is done in one turn."""
        if not request.prefix.startswith("until paused"):
            return self.complete(request, cancelled, on_progress)
        n_times = int(request.prefix.split()[-1])
        for i in range(n_times):
            if on_progress is not None:
                on_progress(Progress(f"turn {i}", None))
            while not paused(True):
                if cancelled():
                    return Completion(request.insertion("too late"), "cancelled")
                time.sleep(0.001)
                pulse.step()
            yield
        return Completion(request.insertion(f"paused {n_times} times"), "stop")

    def prefetching(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
    ) -> Generator[None, None, None]:
        self._read_ahead.append(request.path)
        yield from self.completing(request, cancelled, None, paused)

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
    ) -> Completion:
        never = threading.Event()
        if request.prefix == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif request.prefix == "hang":
            if on_progress is not None:
                on_progress(Progress("one", None))
            never.wait()
        elif request.prefix == "spin":
            while True:
                pass
        elif request.prefix.startswith("steps of"):
            _, _, step_s, n_steps = request.prefix.split()
            for _ in range(int(n_steps)):
                until_s = time.process_time() + float(step_s)
                while time.process_time() < until_s:
                    pass
                pulse.step()
        elif request.prefix == "until cancelled":
            while not cancelled():
                never.wait(0.001)
                pulse.step()
            return Completion(request.insertion("too late"), "cancelled")
        elif request.prefix in ("tell", "tell late") and on_progress is not None:
            now_s, all_s = time.monotonic(), request.deadline_ms / 1e3
            tells_s = now_s + (all_s / 2 if request.prefix == "tell late" else 0)
            while not cancelled() and time.monotonic() < tells_s:
                never.wait(0.001)
                pulse.step()
            on_progress(Progress("one\ntw", request.insertion("one")))
            while not cancelled() and time.monotonic() < now_s + all_s:
                never.wait(0.001)
                pulse.step()
            return Completion(request.insertion("one\ntwo\nthree"), "stop")
        elif request.prefix == "lines":
            return Completion(request.insertion("one\ntwo words\nthree"), "stop")
        elif request.prefix.endswith("whole"):
            return Completion(request.insertion("\n    next"), "stop")
        elif request.prefix == "choose":
            edits = [edit for text in "abcd" if (edit := request.insertion(text)) is not None]
            others = tuple(edits[1 : request.n_candidates])
            return Completion(edits[0], "stop", alternatives=others)
        elif request.prefix == "is parsed":
            return Completion(request.insertion(str(request.parses)), "stop")
        elif request.prefix == "is one line":
            return Completion(request.insertion(str(not request.multiline)), "stop")
        elif request.prefix == "what was closed":
            return Completion(request.insertion(" ".join(sorted(self._closed))), "stop")
        elif request.prefix == "what was read ahead":
            return Completion(request.insertion(" ".join(filter(None, self._read_ahead))), "stop")
        elif request.prefix == "print":
            os.write(1, b"native chatter on stdout\n")
            print("chatter of Python on stdout", flush=True)
        elif request.prefix.startswith("raise"):
            raise ValueError(request.prefix)
        return Completion(request.insertion(f"[{request.prefix}|{request.suffix}]"), "stop")

    def find_edits(
        self, request: NextEditRequest, cancelled: Callable[[], bool] = lambda: False
    ) -> NextEdits:
        """Edits of all lines that hold "old", from the cursor's on, which replace it by "new"; and
        "add)" by "add more)".
        "elsewhere PATH": also of the first line of that file. "hang": none, ever; "raise": an
        error."""
        if request.text == "hang":
            threading.Event().wait()
        if request.text.startswith("raise"):
            raise ValueError(request.text)
        self._n_dismissed += len(request.dismissed)
        return self._replacing("old", request, "scripted")

    def edit_outcomes(self) -> tuple[int, int]:
        """Each edit that a request calls dismissed is news."""
        n_dismissed, self._n_dismissed = self._n_dismissed, 0
        return 0, n_dismissed

    def _replacing(self, word: str, request: NextEditRequest, kind: str) -> NextEdits:
        document = request.document or request.path
        texts = [(request.path, document, request.version, request.text, request.cursor)]
        if request.text.startswith("elsewhere ") and request.where == "workspace":
            path = request.text.split("\n")[0].split(" ", 1)[1]
            first = Path(path).read_text("utf-8").split("\n")[0]
            texts.append((path, path, -1, first, 0))
        edits: list[NextEdit] = []
        unwanted = {(each.path, each.old, each.text) for each in request.dismissed}
        for path, name, version, text, cursor in texts:
            start = 0
            for number, line in enumerate(text.split("\n")):
                end = start + len(line)
                new = line.replace(word, "new").replace("add)", "add more)")
                made = Edit(name, version, start, end, new)
                start = end + 1
                is_wanted = (path, line, made.text) not in unwanted
                if line != made.text and end >= cursor and is_wanted:
                    edits.append(NextEdit(made, path, line, number, 0.9, kind))
        why = None if edits else NoNextEdit.NO_PLACE
        return NextEdits(tuple(edits[: request.n_most]), why, n_left=len(edits))

    def finding(
        self,
        request: NextEditRequest,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
    ) -> Generator[None, None, NextEdits]:
        """Edits that replace "odd" by "new", after the first pause where the text begins so."""
        if request.text.startswith("until paused"):
            while not (paused(True) or cancelled()):
                time.sleep(0.001)
                pulse.step()
            if cancelled():
                return NextEdits(why=NoNextEdit.CANCELLED)
            yield
        return self._replacing("odd", request, "model")

    def close(self) -> None:
        pass


def load(
    settings: Settings, on_loading: Callable[[float], None]
) -> tuple[ScriptedEngine, Callable[[], wire.Ready]]:
    how = sys.argv[1]
    if how == "refuse" and not any(map(os.path.exists, sys.argv[2:])):
        raise ModelError("no such model", "Choose another one.")
    if how == "die":
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crash":
        print("why it crashed", file=sys.stderr, flush=True)
        os.abort()
    if how == "assert":
        from llama_cpp import _ggml

        from codespec.backends.llama import loader

        assert loader.build()
        _ggml.libggml.ggml_abort(b"loader.cpp", 7, b"%s", b"why it failed")
    if how == "spin":
        while True:
            pass
    if how == "wait":
        on_loading(0.4)
        while not Path(sys.argv[2]).exists():
            threading.Event().wait(0.005)
    ready = wire.Ready(model=settings.model.target or "scripted", model_path="", backend="none")
    return ScriptedEngine(), lambda: ready


if __name__ == "__main__":
    if sys.argv[1] == "garbage":
        os.write(1, b"\xff" * 64)
        threading.Event().wait()
    os._exit(worker.main(load))
