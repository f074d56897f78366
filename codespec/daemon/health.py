"""Health of a worker: it makes progress with its work, or hangs.

A worker that is slow because the machine is busy must live, however long it takes. So it counts as
hung by processor time of its own without progress, and, since a worker that waits for ever takes
none, by time on the clock.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass

from codespec.system.pulse import Pulse

_MAX_LOOKS = 4
"""A longer pause between two looks counts as so many: this process was stopped, or the machine
was."""


@dataclass(frozen=True, slots=True)
class HangLimits:
    """Seconds without progress after which a worker counts as hung.

    cpu_s: of its processor time, for each thread that computes.
    clock_s: on the clock, at work.
    load_s: on the clock, while it loads.
    look_s: pause between two looks.
    """

    cpu_s: float
    clock_s: float
    load_s: float
    look_s: float


class Health:
    """Health of one worker."""

    def __init__(self, pid: int, pulse: Pulse, limits: HangLimits) -> None:
        self._pid = pid
        self._pulse = pulse
        self._limits = limits
        self._seen = (-1, -1)
        self._cpu_s = 0.0  # taken when it last got on
        self._looked_s = 0.0
        self._still_s = 0.0

    def begin(self) -> None:
        """Report that it has work from now on."""
        self._seen = (-1, -1)

    def look(self, *, loads: bool) -> str:
        """The reason why the worker counts as hung, "" as long as it does not. Call it every
        `look_s` seconds while the worker has work. loads: it loads a model, and a change of its
        memory counts as progress, too: libraries report nothing of some stages, and the system
        reads files into memory by itself."""
        now, cpu_s = time.monotonic(), cpu_seconds(self._pid)
        seen = (self._pulse.n_steps, resident_bytes(self._pid) if loads else 0)
        if seen != self._seen:
            self._seen, self._cpu_s, self._still_s = seen, cpu_s, 0.0
        else:
            self._still_s += min(now - self._looked_s, _MAX_LOOKS * self._limits.look_s)
        self._looked_s = now
        most_s = self._limits.load_s if loads else self._limits.clock_s
        if (took_s := cpu_s - self._cpu_s) > self._limits.cpu_s * self._pulse.n_threads:
            how = f"{took_s:.1f} s of processor time"
        elif self._still_s > most_s:
            how = f"{most_s:g} s"
        else:
            return ""
        if loads:
            return f"loading took over {how} and got nowhere"
        return f"the model worker hung: it got nowhere in {how}"


def cpu_seconds(pid: int) -> float:
    """Processor time in seconds that a process has taken so far; 0 if the system does not tell."""
    if sys.platform == "linux":
        # Its clock, named as the system does: quicker than its files, and never hidden from us.
        # Source: linux/include/linux/posix-timers_types.h, make_process_cpuclock
        with contextlib.suppress(OSError):
            return time.clock_gettime(~pid << 3 | 2)
        return 0.0
    import psutil

    with contextlib.suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system
    return 0.0


def resident_bytes(pid: int) -> int:
    """Resident memory of a process in bytes; 0 if the system does not tell."""
    import psutil  # for who asks; a daemon starts faster without

    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).memory_info().rss
    return 0
