"""The machine's power source: on battery, work that may be thrown away is not done."""

from __future__ import annotations

import contextlib
import time

_LOOK_AGAIN_S = 10.0
SAVING = "on battery: nothing is read ahead"


class PowerSource:
    """Tells if power is to be saved: the machine runs on its battery, and `daemon.power` is
    "auto"."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._looked_s = -_LOOK_AGAIN_S
        self._on_battery = False

    @property
    def saves(self) -> bool:
        """True if power is to be saved. The system is asked once in a while; it takes less than a
        millisecond, the first time some milliseconds more."""
        if self._mode == "full":
            return False
        now = time.monotonic()
        if now - self._looked_s >= _LOOK_AGAIN_S:
            self._looked_s, self._on_battery = now, on_battery()
        return self._on_battery


def on_battery() -> bool:
    """True if the machine has a battery and is not plugged in; False where the system does not
    tell."""
    import psutil  # for who asks; a daemon starts faster without

    with contextlib.suppress(OSError, RuntimeError, ValueError, AttributeError):
        battery = psutil.sensors_battery()
        return battery is not None and battery.power_plugged is False
    return False
