"""Processes: how Python is started on a module of ours, how one gives way, and how one ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Generator

NICENESS = 10
ENDINGS = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end, beside the interrupt of a terminal."""

# With -c as with -m, Python imports from the working folder first; here that is undone before
# anything is imported. (-P would do, from Python 3.11 on.)
_RUN = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; import runpy; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def module_command(module: str, *arguments: str) -> list[str]:
    """As `python -m module arguments`, but the working folder, which may be a repository, is no
    place to import from."""
    return [sys.executable, "-c", _RUN, module, *arguments]


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
