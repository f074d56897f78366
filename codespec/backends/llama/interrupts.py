"""Ctrl-C, or another request to end, while llama.cpp is at work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from codespec.processes import ENDINGS


@contextmanager
def interrupts_noted() -> Generator[Callable[[], bool], None, None]:
    """What a signal's handler raises is raised in whatever Python code runs next; in a function
    that llama.cpp calls it is lost, and so is that function's answer. Here the signal is noted, and
    handled at the end. Gives whether one has come."""
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    handlers = {n: h for n in (signal.SIGINT, *ENDINGS) if callable(h := signal.getsignal(n))}
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
