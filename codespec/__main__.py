"""`codespec`, and `python -m codespec`."""

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line. An interrupt while it is imported, a tenth of a second, ends the
    process as one that comes later does."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, _end)
    from codespec.cli import main as run

    if is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
