"""Log records without source text.

Exceptions and other libraries' messages may quote what they were working on, so of those only the
unformatted message, the type and the place are kept. Our own messages are written without text.
"""

from __future__ import annotations

import errno
import logging
import re
import traceback
from pathlib import Path

_PLACEHOLDERS = re.compile(r"(?:\s*%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z])+")


def outline(error: BaseException) -> str:
    """Type and places of an exception, without its message; the system's errors by their names."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    name = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    text = f"{type(error).__name__}{f' {name}' if name else ''} at {places or 'unknown'}"
    cause = error.__cause__ or error.__context__
    return f"{text}, after {outline(cause)}" if cause is not None else text


class PrivacyFilter(logging.Filter):
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
