"""Processes: starting Python on a module of ours, priority and memory limits, and termination."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator

from codespec.system import programs

NICENESS = 10
_PATIENCE_S = 20.0
_PR_SET_DUMPABLE = 4
_STATM_BYTES = 256
TERMINATION_SIGNALS = (
    (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)
)
"""Signals that ask a process to end, beside the interrupt of a terminal."""

# With -c as with -m, Python imports from the working folder first; this code undoes that before any
# other import. (-P does the same from Python 3.11 on.)
_HERE = (
    f"import sys; sys.path[:] = [p for p in sys.path if p]; from {__name__} import begin; begin(); "
)
_BOUND = f"from {__name__} import end_with_input; end_with_input(); "
_RUN = "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


def begin() -> None:
    """Harden this process. To be called first in each of our processes, before it reads anything.

    A crash then leaves no core dump, which could hold source text, even unsaved. The PATH is
    limited to folders outside of workspaces, for libraries and programs that it starts.
    """
    os.environ["PATH"] = programs.path()
    if sys.platform == "win32":
        return
    import resource

    # Not just the limit: on Linux a crash handler may be told of all crashes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def away() -> str:
    """A working folder that is no workspace: the user's home folder, else the root."""
    home = os.path.expanduser("~")
    return home if os.path.isabs(home) and os.path.isdir(home) else os.path.abspath(os.sep)


def module_command(module: str, *arguments: str) -> list[str]:
    """Command that runs `python -m module arguments` without imports from the working folder, which
    may be a repository."""
    return [sys.executable, "-c", _HERE + _RUN, module, *arguments]


def bound_command(module: str, *arguments: str) -> list[str]:
    """`module_command` for a child that never outlives its parent, however that ends: its standard
    input must be a pipe whose other end the parent alone holds, and never writes to."""
    return [sys.executable, "-c", _HERE + _BOUND + _RUN, module, *arguments]


def end_with_input() -> None:
    """Terminate this process at the end of standard input: by SIGTERM, and by force 20 seconds
    later. Standard input is empty from now on, and children do not inherit the pipe."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        while os.read(pipe, 1):
            pass
        if sys.platform == "win32":
            os.kill(os.getpid(), signal.SIGTERM)
        else:  # to the main thread, so that its waits are interrupted
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(_PATIENCE_S)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=wait, daemon=True, name="codespec-bound").start()


def how_it_ended(status: int) -> str:
    """An exit status as a predicate for a message, such as "ended with status 1". status: negative
    for the number of a signal."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"was killed by {name}"


def lower_priority(max_memory_bytes: int) -> None:
    """Lower this process's priority and limit its memory, for the rest of its life. Beyond the
    limit an allocation fails, which ends this process instead of a more useful one. Does what the
    system allows, and raises no limit that exists."""
    if sys.platform == "win32":
        import psutil

        with contextlib.suppress(psutil.Error):
            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        return
    import resource

    with contextlib.suppress(OSError):
        nice = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [max_memory_bytes, *(n for n in (soft, hard) if n != resource.RLIM_INFINITY)]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


@contextlib.contextmanager
def memory_limited(n_bytes: int) -> Generator[Callable[[], bool], None, None]:
    """Limit memory meanwhile to `n_bytes` more than now, for native code that may allocate without
    bound: beyond it this process ends, before the system chooses one. Linux alone; takes some seven
    microseconds.

    Yields a function that returns True once half of `n_bytes` is in use, for code that can stop.
    """
    if sys.platform != "linux":
        yield lambda: False
        return
    import resource

    statm = _statm()
    page = resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    _, resident, shared, _, _, data, _ = map(int, os.pread(statm, _STATM_BYTES, 0).split())
    limits = [data * page + n_bytes]
    limits += [n for n in (soft, hard) if n != resource.RLIM_INFINITY]
    most = resident - shared + n_bytes // 2 // page

    def is_half_taken() -> bool:
        _, resident, shared, *_ = map(int, os.pread(statm, _STATM_BYTES, 0).split())
        return resident - shared > most

    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield is_half_taken
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


_statm_of: dict[int, int] = {}


def _statm() -> int:
    """Descriptor of the file that tells this process's memory, which stays open: to open it takes
    longer than all else about a limit. A fork's would tell that of its parent."""
    pid = os.getpid()
    if pid not in _statm_of:
        for other in _statm_of.values():
            os.close(other)
        _statm_of.clear()
        _statm_of[pid] = os.open("/proc/self/statm", os.O_RDONLY)
    return _statm_of[pid]


@contextlib.contextmanager
def ending_in_order() -> Generator[None, None, None]:
    """Turn termination signals into SystemExit meanwhile, as Ctrl-C is an exception; signals that
    are ignored, as under `nohup`, stay ignored."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    heard = [number for number in TERMINATION_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def default_threads() -> int:
    """Default number of CPU threads of a model: one a core that this process may use, at most 8;
    more slow down passes over few tokens."""
    n = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(n, 8)
