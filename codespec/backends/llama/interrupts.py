"""Signals that ask the process to end, such as Ctrl-C, during calls of llama.cpp."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from codespec.system.processes import TERMINATION_SIGNALS


@contextmanager
def interrupts_noted() -> Generator[Callable[[], bool], None, None]:
    """Note signals during a call of llama.cpp, and handle them after it. Yields a function that is
    True once a signal came.

    An exception of a signal's handler is raised in whatever Python code runs next; in a callback of
    llama.cpp it would be lost, and so would the callback's result.
    """
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    handlers = {
        n: h for n in (signal.SIGINT, *TERMINATION_SIGNALS) if callable(h := signal.getsignal(n))
    }
    if threading.current_thread() is not threading.main_thread() or not handlers:
        yield lambda: False
        return
    for number in handlers:
        signal.signal(number, note)
    try:
        yield lambda: bool(noted)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in noted[:1]:
            handlers[signal.Signals(number)](number, None)
