"""The time that a model will take for a token on this machine, before it is downloaded.

A pass over one token reads the weights once, and on a CPU the speed of memory bounds it. That speed
is measured here; arithmetic may take longer where there are few or old cores.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from codespec.models.entries import GB, CatalogueEntry
from codespec.system.processes import default_threads

_SHARE_BYTES = 64 << 20  # read by each thread: more than its share of any cache
_N_READS = 5


def memory_rate() -> float:
    """Bytes a second at which as many threads as a model has by default read memory together. Takes
    a tenth of a second, and 64 MiB a thread."""
    n_threads = default_threads()
    shares = [np.ones(_SHARE_BYTES // 4, np.int32) for _ in range(n_threads)]
    least_s = float("inf")
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(_N_READS):
            begun = time.perf_counter()
            list(pool.map(np.max, shares))
            least_s = min(least_s, time.perf_counter() - begun)
    return n_threads * _SHARE_BYTES / least_s


def ms_a_token(entry: CatalogueEntry, bytes_a_second: float) -> float:
    """Milliseconds that a pass over one token takes at least. Drafts make the passes fewer."""
    return entry.read_gb * GB / bytes_a_second * 1e3
