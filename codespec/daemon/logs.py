"""Log files that never contain source text.

Our own messages are written so. Exceptions and other libraries' messages may quote what they
were working on, so of those only the unformatted message, the type and the place are kept.
"""

from __future__ import annotations

import errno
import logging
import logging.handlers
import os
import re
import traceback
from io import TextIOWrapper
from pathlib import Path

from codespec.folders import private_opener

_MAX_BYTES = 1_000_000
_N_OLD_FILES = 2
_PLACEHOLDERS = re.compile(r"(?:\s*%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z])+")
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


def outline(error: BaseException) -> str:
    """Type and places of an exception, without its message; the system's errors by their names."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    name = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    text = f"{type(error).__name__}{f' {name}' if name else ''} at {places or 'unknown'}"
    cause = error.__cause__ or error.__context__
    return f"{text}, after {outline(cause)}" if cause is not None else text


class Private(logging.Filter):
    """Drops from each record what might quote source text."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("codespec"):
            msg = str(record.msg)
            record.msg, record.args = _PLACEHOLDERS.sub("…", msg) if record.args else msg, None
        if record.exc_info and record.exc_info[1] is not None:
            record.msg = f"{record.getMessage()}: {outline(record.exc_info[1])}"
            record.args = None
        record.exc_info = record.exc_text = record.stack_info = None
        return True


class _RotatingFile(logging.handlers.RotatingFileHandler):
    """Takes stderr along when it rotates, so that a crash is reported in the current file."""

    def _open(self) -> TextIOWrapper:
        file = open(self.baseFilename, "ab", opener=private_opener)  # noqa: SIM115 - the stream's
        return TextIOWrapper(file, self.encoding)

    def doRollover(self) -> None:
        super().doRollover()
        if self.stream is not None:
            os.dup2(self.stream.fileno(), 2)


def set_up(path: Path, level: str) -> None:
    """Log to a rotating file. For entry points only."""
    handler = _RotatingFile(path, maxBytes=_MAX_BYTES, backupCount=_N_OLD_FILES, encoding="utf-8")
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(Private())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def last_lines(path: Path, n_lines: int) -> list[str]:
    """The end of a log file; [] where there is none."""
    try:
        with open(path, "rb", opener=private_opener) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 400 * n_lines))
            return file.read().decode("utf-8", "replace").splitlines()[-n_lines:]
    except OSError:
        return []
