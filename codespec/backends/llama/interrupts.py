"""Ctrl-C while llama.cpp is at work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_noted() -> Generator[Callable[[], bool], None, None]:
    """An interrupt is raised in whatever Python code runs next; in a function that llama.cpp calls
    it is lost, and so is that function's answer. Here it is noted, and raised at the end. Gives
    whether one has come."""
    has_come = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal has_come
        has_come = True

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: has_come
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if has_come:
            raise KeyboardInterrupt
