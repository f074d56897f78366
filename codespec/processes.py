"""Processes: how Python is started on a module of ours, how one gives way, and how one ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator

from codespec import programs

NICENESS = 10
_PATIENCE_S = 20.0
_PR_SET_DUMPABLE = 4
ENDINGS = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end, beside the interrupt of a terminal."""

# With -c as with -m, Python imports from the working folder first; here that is undone before
# anything is imported. (-P would do, from Python 3.11 on.)
_HERE = (
    f"import sys; sys.path[:] = [p for p in sys.path if p]; from {__name__} import begin; begin(); "
)
_BOUND = f"from {__name__} import end_with_input; end_with_input(); "
_RUN = "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


def begin() -> None:
    """To be called first in each process of ours, before it has read anything.

    If it crashes, no copy of its memory is left anywhere: that holds source, unsaved one, too.
    Libraries and programs that it starts find no program in a workspace.
    """
    os.environ["PATH"] = programs.path()
    if sys.platform == "win32":
        return
    import resource

    # Not just the limit: on Linux a program that takes dumps may be told of all crashes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def away() -> str:
    """A folder to work in that is no workspace: the user's home folder."""
    home = os.path.expanduser("~")
    return home if os.path.isabs(home) and os.path.isdir(home) else os.path.abspath(os.sep)


def module_command(module: str, *arguments: str) -> list[str]:
    """As `python -m module arguments`, but the working folder, which may be a repository, is no
    place to import from."""
    return [sys.executable, "-c", _HERE + _RUN, module, *arguments]


def bound_command(module: str, *arguments: str) -> list[str]:
    """The same for a child that does not outlive its parent, however that ends: its standard input
    is to be a pipe whose other end the parent alone has, and never writes to."""
    return [sys.executable, "-c", _HERE + _BOUND + _RUN, module, *arguments]


def end_with_input() -> None:
    """At the end of standard input this process is asked to end, as by SIGTERM, and later made to
    if it does not. For the rest of the process there is no input, and its children do not get
    hold of the pipe."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        while os.read(pipe, 1):
            pass
        if sys.platform == "win32":
            os.kill(os.getpid(), signal.SIGTERM)
        else:  # the main thread, as whatever that waits for is to be interrupted
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(_PATIENCE_S)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=wait, daemon=True, name="codespec-bound").start()


def how_it_ended(status: int) -> str:
    """An exit status, negative for the number of a signal, after the name of what had it."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"was killed by {name}"


def be_modest(max_memory_bytes: int) -> None:
    """Give way to everybody else on the machine, for good. Beyond the limit an allocation fails,
    which ends this process instead of something more useful elsewhere. Does what the system
    allows, and takes no limit back."""
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
    """For native code that may take memory without limit: what asks for so much more than there is
    now ends this process, before the system has to choose one. Linux; some ten microseconds.

    Yields a question for code that can be stopped: true once half of that is taken.
    """
    if sys.platform != "linux":
        yield lambda: False
        return
    import resource

    page = resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/statm", "rb", buffering=0) as file:
        _, resident, shared, _, _, data, _ = map(int, file.read().split())
        limits = [data * page + n_bytes]
        limits += [n for n in (soft, hard) if n != resource.RLIM_INFINITY]
        most = resident - shared + n_bytes // 2 // page

        def is_half_taken() -> bool:
            file.seek(0)
            _, resident, shared, *_ = map(int, file.read().split())
            return resident - shared > most

        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
        try:
            yield is_half_taken
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextlib.contextmanager
def ending_in_order() -> Generator[None, None, None]:
    """A request to end is an exception, as an interrupt is one; what `nohup` ignores stays so."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    heard = [number for number in ENDINGS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def default_threads() -> int:
    """One thread per core this process may use, at most 8: more cost speed in passes over few
    tokens."""
    n = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(n, 8)
