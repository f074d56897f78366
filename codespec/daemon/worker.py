"""The model worker: the one process of the daemon with native code in it, and free to die.

Main thread: the engine, alone (one thread touches llama). Reader thread: frames from the
supervisor; it marks requests as cancelled or to be paused, and ends the process when the supervisor
is gone. Frames go out on a private copy of stdout; descriptor 1 becomes stderr, so nothing that a
native library prints can get between them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, BinaryIO, cast

from codespec.backends.base import CancelledError
from codespec.backends.registry import decodes_by_itself, target_of
from codespec.config import Settings
from codespec.daemon import payload, wire
from codespec.daemon.edit_figures import EditFigures
from codespec.errors import CodespecError
from codespec.next_edit import NextEdits, NoNextEdit
from codespec.reasons import NoSuggestion
from codespec.requests import (
    Completion,
    EditFinder,
    Engine,
    Idler,
    Interruptible,
    Librarian,
    ModelEditFinder,
    Prefetcher,
    Progress,
)
from codespec.system import pulse
from codespec.system.log_privacy import outline

if TYPE_CHECKING:
    from codespec.engine.local import LocalEngine

QUIET_S = 2.0
"""Seconds without a request after which the user does not type: time for other work."""

EngineFactory = Callable[
    [Settings, Callable[[float], None]], "tuple[Engine, Callable[[], wire.Ready]]"
]
"""Builds an engine from settings. Its second argument is called with the share that is loaded, 0 to
1. Returns: the engine, and what describes it at any moment."""

# Smallest further share of the model that is reported.
_STEP = 0.05


@dataclasses.dataclass(slots=True, eq=False)
class _Task:
    """A request in the worker. pause: its last request to pause since it went on. work, progressed:
    used by the main thread alone; work: None until it begins."""

    message: wire.Complete | wire.FindEdits
    cancelled: threading.Event = dataclasses.field(default_factory=threading.Event)
    pause: wire.Pause | None = None
    work: Generator[None, None, wire.Answer] | None = None
    progressed: bool = False

    def paused(self, has_progressed: bool) -> bool:
        """True if it must pause now, see `requests.Paused`."""
        self.progressed = has_progressed
        if has_progressed:
            pulse.step()
        return self.pause is not None and (has_progressed or self.pause.at_once)


_Tasks = queue.SimpleQueue[_Task | wire.Closed]
"""Queue of tasks: a task is in it once to begin, and again each time it is to go on or to end."""


class Channel:
    """Frames from and to the supervisor. Use `receive` on one thread, `send` on one thread."""

    def __init__(self, incoming: BinaryIO, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @classmethod
    def over_stdio(cls) -> Channel:
        """Take stdin and stdout away from everything else in the process."""
        incoming, outgoing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        widen_pipe(incoming)
        return cls(os.fdopen(incoming, "rb", buffering=1 << 16), outgoing)

    def receive(self) -> wire.ToWorker | None:
        return wire.read_blocking(self._incoming.read, wire.to_worker_decoder)

    def send(self, message: wire.Message) -> None:
        rest = memoryview(wire.frame(message))
        while rest:
            rest = rest[os.write(self._outgoing, rest) :]


def widen_pipe(pipe: int) -> None:
    """Enlarge a pipe's buffer: 64 KiB is less than a request of a long document, and the sender
    would be woken up in between. No effect if the system cannot."""
    if sys.platform == "linux":
        import fcntl

        if hasattr(fcntl, "F_SETPIPE_SZ"):  # Python 3.10
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, wire.STREAM_BYTES)


def serve(channel: Channel, factory: EngineFactory) -> int:
    """Load the model, then answer until the supervisor closes the channel (which ends the process).

    Returns: an exit status, if the engine cannot be built.
    """
    load = channel.receive()
    if not isinstance(load, wire.Load):
        return 0 if load is None else 2
    if load.pulse:
        pulse.share(load.pulse)
    tasks: _Tasks = queue.SimpleQueue()
    known: dict[int, _Task] = {}  # not answered yet
    reader = threading.Thread(target=_read, args=(channel, tasks, known), daemon=True)
    reader.start()
    told = 0.0

    def on_loading(share: float) -> None:
        nonlocal told
        pulse.step()
        if share >= told + _STEP:
            told = share
            channel.send(wire.Loading(share=share))

    try:
        engine, described = factory(load.settings, on_loading)
    except CodespecError as e:
        channel.send(wire.failure(0, e))
        return 0
    # What was imported and loaded stays; looking for garbage in it takes 20 to 50 ms of a request.
    gc.collect()
    gc.freeze()
    ready = described()
    channel.send(ready)

    def tell_changes() -> None:
        nonlocal ready
        if (now := described()) != ready:
            ready = now
            channel.send(ready)

    paths: dict[str, str] = {}
    _work_while_idle(engine, tasks)
    while True:
        try:
            task = tasks.get(timeout=QUIET_S)
        except queue.Empty:
            _work_while_idle(engine, tasks)
            tell_changes()
            task = tasks.get()
        pulse.step()
        if isinstance(task, _Task):
            if task.message.id not in known:
                continue  # it had ended when its cancel came
            said = _turn(engine, task, paths, channel.send)
            if not isinstance(said, wire.Paused):
                del known[task.message.id]
            channel.send(said)
            tell_changes()
        elif isinstance(engine, Librarian) and (path := paths.pop(task.document, "")):
            engine.closed(path)


def _turn(
    engine: Engine, task: _Task, paths: dict[str, str], send: Callable[[wire.Message], None]
) -> wire.Answer | wire.Paused:
    if task.work is None:
        task.work = _answer(engine, task, paths, send)
    elif task.cancelled.is_set():
        task.work.close()
        return _cancelled(task)
    try:
        next(task.work)
    except StopIteration as end:
        return cast(wire.Answer, end.value)
    return wire.Paused(id=task.message.id, progressed=task.progressed)


def _work_while_idle(engine: Engine, tasks: _Tasks) -> None:
    """Measure the cost of passes and the like, until a request comes."""
    if isinstance(engine, Idler):
        while tasks.empty() and engine.idle(lambda: not tasks.empty()):
            pass


def _read(channel: Channel, tasks: _Tasks, known: dict[int, _Task]) -> None:
    try:
        while (message := channel.receive()) is not None:
            if isinstance(message, wire.Complete | wire.FindEdits):
                task = known[message.id] = _Task(message)
                tasks.put(task)
            elif isinstance(message, wire.Closed):
                tasks.put(message)
            elif not isinstance(message, wire.Load) and (task := known.get(message.id)):
                if isinstance(message, wire.Pause):
                    task.pause = message
                    continue
                if isinstance(message, wire.Cancel):
                    task.cancelled.set()
                task.pause = None
                tasks.put(task)
    except Exception as e:
        _report(e)
    # The supervisor is gone or broken. The engine's thread may be deep in native code: end all.
    os._exit(0)


def _answer(
    engine: Engine, task: _Task, paths: dict[str, str], send: Callable[[wire.Message], None]
) -> Generator[None, None, wire.Answer]:
    """Answer a request. paths: of the documents that were asked about and are lent, to be kept up
    to date."""
    message = task.message
    try:
        if isinstance(message, wire.FindEdits):
            return (yield from _found(engine, message, task, paths))
        return (yield from _completed(engine, message, task, paths, send))
    except CancelledError:
        return _cancelled(task)
    except CodespecError as e:
        return wire.failure(message.id, e)
    except Exception as e:
        _report(e)
        return wire.Failed(
            id=message.id,
            message=f"the engine failed: {type(e).__name__}",
            hint="See the log: codespec daemon logs",
            kind="internal",
        )


def _found(
    engine: Engine, message: wire.FindEdits, task: _Task, paths: dict[str, str]
) -> Generator[None, None, wire.EditsFound]:
    cancelled = task.cancelled.is_set
    found = NextEdits(why=NoNextEdit.CANCELLED)
    if not cancelled():
        request = payload.unpack_edit_request(message.request)
        if message.document and request.path:
            paths[message.document] = request.path
        request = dataclasses.replace(request, deadline_ms=message.deadline_ms)
        found = NextEdits(why=NoNextEdit.NO_PLACE)
        if message.with_model and isinstance(engine, ModelEditFinder):
            found = yield from engine.finding(request, cancelled, task.paused)
        elif isinstance(engine, EditFinder):
            found = engine.find_edits(request, cancelled)
    n_made, n_dismissed = engine.edit_outcomes() if isinstance(engine, EditFinder) else (0, 0)
    why_none = found.why.value if found.why is not None else ""
    figures = EditFigures.of_answer(why_none, n_made=n_made, n_dismissed=n_dismissed)
    return wire.EditsFound(id=message.id, edits=payload.pack(found), figures=figures)


def _completed(
    engine: Engine,
    message: wire.Complete,
    task: _Task,
    paths: dict[str, str],
    send: Callable[[wire.Message], None],
) -> Generator[None, None, wire.Completed]:
    def tell(progress: Progress) -> None:
        send(wire.Partial(id=message.id, progress=payload.pack(progress)))

    request = payload.unpack_request(message.request)
    if message.document and request.path and request.lends:
        paths[message.document] = request.path
    request = dataclasses.replace(request, deadline_ms=message.deadline_ms, parses=message.parses)
    if message.prefetch:
        if isinstance(engine, Prefetcher):
            yield from engine.prefetching(request, task.cancelled.is_set, task.paused)
        completion = Completion()
    elif task.cancelled.is_set():
        completion = Completion(
            finish="cancelled", why=NoSuggestion.CANCELLED, detail="cancelled before it began"
        )
    else:
        on_progress = tell if message.stream else None
        told = (request, task.cancelled.is_set, on_progress)
        if isinstance(engine, Interruptible):
            completion = yield from engine.completing(*told, task.paused)
        else:
            completion = engine.complete(*told)
    return wire.Completed(id=message.id, completion=payload.pack(completion))


def _cancelled(task: _Task) -> wire.Answer:
    if isinstance(task.message, wire.FindEdits):
        none = NextEdits(why=NoNextEdit.CANCELLED)
        figures = EditFigures.of_answer(NoNextEdit.CANCELLED.value)
        return wire.EditsFound(id=task.message.id, edits=payload.pack(none), figures=figures)
    empty = Completion(finish="cancelled", why=NoSuggestion.CANCELLED, detail="cancelled")
    return wire.Completed(id=task.message.id, completion=payload.pack(empty))


def _report(error: BaseException) -> None:
    # The exception's message may quote source text, and stderr goes to a log.
    print(outline(error), file=sys.stderr, flush=True)


def local_engine(
    settings: Settings, on_loading: Callable[[float], None]
) -> tuple[Engine, Callable[[], wire.Ready]]:
    # Imported here: everything heavy or native comes with it.
    from codespec.engine.local import LocalEngine
    from codespec.engine.served import ServedEngine

    if decodes_by_itself(target_of(settings.model)):
        served = ServedEngine(settings, LocalEngine)
        return served, lambda: _ready(served.main, settings, served.saved_bytes, served.notice)
    engine = LocalEngine(settings, on_loading=on_loading)
    ready = _ready(engine, settings, engine.saved_bytes)
    return engine, lambda: ready


def _ready(
    engine: LocalEngine | None, settings: Settings, saved_bytes: int, notice: str = ""
) -> wire.Ready:
    where = settings.model.target
    if engine is None:  # its server could not be asked yet
        return wire.Ready(
            model=where,
            model_path=where,
            backend="",
            saved_bytes=saved_bytes,
            has_log_probs=False,
            notice=notice,
        )
    info = engine.info
    return wire.Ready(
        model=info.name,
        model_path=info.path or where,
        backend=info.backend,
        file_bytes=info.file_bytes,
        saved_bytes=saved_bytes,
        has_log_probs=engine.has_log_probs,
        notice=notice,
        figures=engine.figures,
    )


def main(factory: EngineFactory = local_engine) -> int:
    channel = Channel.over_stdio()
    faulthandler.enable()  # where a native crash happened, into the log
    try:
        return serve(channel, factory)
    except Exception as e:
        _report(e)
        return 1


if __name__ == "__main__":
    # sys.exit would shut the interpreter down beside native threads, which may crash.
    status = main()
    sys.stderr.flush()
    os._exit(status)
