"""The daemon's log files, which never contain source text: see `system.log_privacy`."""

from __future__ import annotations

import logging
import logging.handlers
import os
from io import TextIOWrapper
from pathlib import Path

from codespec.system.folders import private_opener
from codespec.system.log_privacy import PrivacyFilter

_MAX_BYTES = 1_000_000
_N_OLD_FILES = 2
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


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
    """Log to a rotating file. level: a name of `logging`'s levels. For entry points only."""
    handler = _RotatingFile(path, maxBytes=_MAX_BYTES, backupCount=_N_OLD_FILES, encoding="utf-8")
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(PrivacyFilter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def last_lines(path: Path, n_lines: int) -> list[str]:
    """The last lines of a log file; [] if there is none."""
    try:
        with open(path, "rb", opener=private_opener) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 400 * n_lines))
            return file.read().decode("utf-8", "replace").splitlines()[-n_lines:]
    except OSError:
        return []
