"""`codespec`, and `python -m codespec`."""

import os
import signal
import sys
from types import FrameType

_WANT_OF_MEMORY = "cannot allocate memory", "failed to map segment", "start new thread"


def main() -> None:
    """Run the command line. An interrupt while it is imported, a tenth of a second, ends the
    process as one that comes later does."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, _end)
    try:
        from codespec.cli import main as run

        if is_heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except (ImportError, MemoryError, OSError, RuntimeError) as e:
        # Libraries are loaded when they are first needed.
        why = str(e)
        if not isinstance(e, MemoryError) and not any(w in why.lower() for w in _WANT_OF_MEMORY):
            raise
        step = "Close other programs, or raise the limit if there is one (ulimit -v)."
        sys.exit(f"error: there is too little memory{why and f' ({why})'}\n  {step}")


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
