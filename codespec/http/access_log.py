"""The access log: a line a request, without any text of the client's.

    2026-11-29T22:50:00.123Z id=4f1c client_id=- key=anna workspace=1 POST /infill 200 answered
    in=812 out=17 first_ms=21.3 ms=64.0

Fields are separated by spaces; none has a space or a control character in it. Senders without a key
that fits get `MOST_STRANGE` lines a minute, so that they cannot push all others out of the files;
their further requests are counted:

    2026-11-29T22:51:00.004Z unwritten=312
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from logging.handlers import RotatingFileHandler
from typing import IO

from codespec.errors import ConfigError
from codespec.http.served_request import ServedRequest

_MAX_BYTES = 10_000_000
_N_OLD_FILES = 4
MOST_STRANGE = 10
_MINUTE_S = 60.0
STANDARD_ERROR = "-"


class AccessLog:
    """Writes to standard error, or to a file of at most 10 MB beside which four older ones stay."""

    def __init__(self, where: str, clock: Callable[[], float] = time.monotonic) -> None:
        """where: a path, or "-" for standard error. Raises: ConfigError for a file that cannot be
        written."""
        self._clock = clock
        self._minute_s = clock()
        self._n_strange = 0
        try:
            handler = (
                logging.StreamHandler(sys.stderr)
                if where == STANDARD_ERROR
                else _RotatingFile(
                    where, maxBytes=_MAX_BYTES, backupCount=_N_OLD_FILES, encoding="ascii"
                )
            )
        except OSError as e:
            raise ConfigError(
                f"cannot write the access log {where}: {e.strerror}",
                "Give a file in a folder that can be written, or - for standard error.",
            ) from None
        # Apart from the program's log and its level.
        self._log = logging.Logger("access")
        self._log.addHandler(handler)

    def write(self, served: ServedRequest) -> None:
        """Write the line of a request that is over, if its sender has not had too many."""
        if self._clock() - self._minute_s >= _MINUTE_S:
            self._end_minute()
        if not served.is_known:
            self._n_strange += 1
            if self._n_strange > MOST_STRANGE:
                return
        self._log.info("%s", line_of(served))

    def _end_minute(self) -> None:
        if self._n_strange > MOST_STRANGE:
            self._log.info("%s unwritten=%d", _now(), self._n_strange - MOST_STRANGE)
        self._minute_s, self._n_strange = self._clock(), 0

    def close(self) -> None:
        """Close the file."""
        self._end_minute()
        for handler in self._log.handlers:
            handler.close()


class _RotatingFile(RotatingFileHandler):
    """A new file is for its owner alone; one that is there, or a device, stays as it is."""

    def _open(self) -> IO[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_opener)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def line_of(served: ServedRequest) -> str:
    """The line of a request; "-" stands for what there is not."""
    wrote = served.first_ms is not None
    fields = (
        _now(),
        f"id={served.request_id}",
        f"client_id={served.client_id or '-'}",
        f"key={served.key or '-'}",
        f"workspace={served.workspace or '-'}",
        served.method,
        served.route,
        str(served.status or "-"),
        served.outcome,
        f"in={served.n_read if wrote else '-'}",
        f"out={served.n_written if wrote else '-'}",
        f"first_ms={'-' if served.first_ms is None else format(served.first_ms, '.1f')}",
        f"ms={served.ms:.1f}",
    )
    return " ".join(fields)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
