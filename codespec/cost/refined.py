"""State of a cost curve: measured costs that real passes refine.

Speed is common to all widths (a busy neighbour, a slow clock) and changes fast; shape is the
machine's and the model's, and changes slowly if at all.

Source: least mean squares (Widrow and Hoff 1960) on the logarithm of the cost, with clipped errors
(Huber 1964).
"""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

N_TABLE = 128
"""Largest width whose cost is looked up in a table."""

N_SETTLING = 2
"""Number of passes of a new width that cost more than those that follow: llama.cpp builds its graph
for the first, CUDA records the launches of the second and replays them from the third on."""

# Learning rates of a pass. All widths beyond one share the overhead of our own work and of a busy
# cache, so that is learned faster.
_SPEED_WEIGHT = 0.1
_WIDE_WEIGHT = 0.03
_SHAPE_WEIGHT = 0.02
# Clip of one pass's error, in natural logarithms: a preempted pass teaches little. It is the same
# for speed and shape: were they drawn to different middles of one skewed distribution, the shape of
# the commonest width would drift for ever.
_MAX_ERROR = 0.5
# Decay of a correction of the shape with each pass: the measurement counts, too.
_SHAPE_KEPT = 0.998
# Passes between two rebuilds of the table.
_REFRESH_EVERY = 32
# Share of drafts that a pass over one token follows, roughly.
_GOES_BACK = 2 / 3


class RefinedCurve:
    """State of a `CostCurve`; the arguments are explained there. Plain lists of numbers, as a pass
    is then observed in a microsecond, where arrays take ten."""

    def __init__(
        self,
        points: dict[int, float],
        back_ms: float,
        is_prior: bool,
        steady: dict[int, float],
    ) -> None:
        ordered = sorted(points.items())
        self.n = [n for n, _ in ordered]
        self.ms = [ms for _, ms in ordered]
        self.log_shape = [0.0] * len(ordered)
        self.log_speed = self.log_wide = 0.0
        self.back_ms = back_ms
        self.is_prior = is_prior
        self.steady = steady
        self.log_steady = dict.fromkeys(steady, 0.0)
        self.n_observed = 0
        self._n_before = 1
        self._n_alike = 1 + N_SETTLING  # passes of one width in a row
        self._knows_load = False  # a plain pass was observed since the last wide one
        # Built lazily: an unused model's curve costs no time.
        self._quiet: list[float] = []
        # Keys: width; of parts (width, first column, length).
        self._rows: dict[int, npt.NDArray[np.float64]] = {}
        self._parts: dict[tuple[int, int, int], npt.NDArray[np.float64]] = {}
        self._costs: dict[int, list[float]] = {}
        self._is_stale = True

    def rows(self, width: int) -> npt.NDArray[np.float64]:
        """(2, N_TABLE) milliseconds of passes over 1, 2, ... tokens, after a wide pass and after
        one over one token, where passes are padded to `width`."""
        self._refresh_if_stale()
        if width not in self._rows:
            self._rows[width] = self._make_rows(width)
        return self._rows[width]

    def part(self, width: int, start: int, n: int) -> npt.NDArray[np.float64]:
        """(2, n) columns of `rows` from `start` on: the same array until costs change."""
        rows = self.rows(width)
        if (width, start, n) not in self._parts:
            part = rows[:, start : start + n]
            if start + n > N_TABLE:
                part = extended(rows, start + np.arange(1, n + 1))
            self._parts[width, start, n] = part
        return self._parts[width, start, n]

    def costs(self, width: int) -> list[float]:
        """The second row of `rows` as a list, for single look-ups."""
        self._refresh_if_stale()
        if width not in self._costs:
            self._costs[width] = self.rows(width)[1].tolist()
        return self._costs[width]

    def refined_ms(self) -> list[float]:
        """Milliseconds at each of the points, refined by real passes, without the present load."""
        known = zip(self.n, self.ms, self.log_shape, strict=True)
        return [ms * math.exp(x + (self.log_wide if n > 1 else 0.0)) for n, ms, x in known]

    def quiet_ms(self, n: int) -> float:
        """Milliseconds of a pass over `n` tokens without the present load."""
        quiet = self._quiet_table()
        if n <= N_TABLE:
            return quiet[n - 1]
        return quiet[-1] + (n - N_TABLE) * (quiet[-1] - quiet[-2])  # the rest of a prompt

    def observe(self, n: int, ms: float) -> None:
        """See `CostCurve.observe`."""
        n_before, self._n_before = self._n_before, n
        self._n_alike = self._n_alike + 1 if n == n_before else 1
        if n in self.steady:
            if self._n_alike > N_SETTLING:  # the first two of a width cost more
                self._observe_steady(n, ms)
            return
        if n == 1 and self._n_alike <= (N_SETTLING if self.steady else 1):
            return  # the extra cost after a wider pass is charged to that, `back_ms`
        error = self._surprise(ms, self.quiet_ms(n))
        i = bisect_right(self.n, n) - 1
        step = _SHAPE_WEIGHT * error
        shape = self.log_shape
        shape[max(i, 0)] *= _SHAPE_KEPT
        # In a run of wide passes, load and width cannot be told apart.
        if n > 1 and self._knows_load:
            self.log_wide = _SHAPE_KEPT * self.log_wide + _WIDE_WEIGHT * error
        self._knows_load = n == 1
        if i < 0 or i + 1 >= len(shape):
            shape[max(i, 0)] += step
        else:
            share = (n - self.n[i]) / (self.n[i + 1] - self.n[i])
            shape[i] += step * (1 - share)
            shape[i + 1] += step * share
        self._is_stale = self._is_stale or self.n_observed % _REFRESH_EVERY == 1

    def _surprise(self, ms: float, quiet_ms: float) -> float:
        """Update the present speed. Returns: the clipped error of the pass's time against its
        prediction, in natural logarithms."""
        error = math.log(ms / quiet_ms) - self.log_speed
        if self.is_prior and not self.n_observed:
            self.log_speed = error
            error = 0.0
        self.n_observed += 1
        error = max(-_MAX_ERROR, min(_MAX_ERROR, error))
        self.log_speed += _SPEED_WEIGHT * error
        return error

    def _observe_steady(self, n: int, ms: float) -> None:
        """Learn from a pass that follows others of its width."""
        error = self._surprise(ms, self.steady_ms(n))
        self.log_steady[n] = _SHAPE_KEPT * self.log_steady[n] + _SHAPE_WEIGHT * error
        self._is_stale = self._is_stale or self.n_observed % _REFRESH_EVERY == 1

    def steady_ms(self, n: int) -> float:
        """Milliseconds of a pass over `n` tokens after others of its width, without the load."""
        return self.steady[n] * math.exp(self.log_steady[n])

    def table_of(self, width: int) -> npt.NDArray[np.float64]:
        """(N_TABLE,) milliseconds where passes are padded to `width`. Raises: ValueError for a
        width that was not measured in a row."""
        if width != 1 and width not in self.steady:
            raise ValueError(f"passes over {width} tokens in a row were not measured")
        quiet = np.array(self._quiet_table())
        if width == 1:
            quiet[1:] += _GOES_BACK * self.back_ms
        else:
            ms = self.steady_ms(width)
            # After a wider pass the padded width costs more again.
            quiet[width:] += N_SETTLING * max(0.0, quiet[width - 1] - ms)
            quiet[:width] = min(ms, quiet[width])
        return quiet * math.exp(self.log_speed)

    def _quiet_table(self) -> list[float]:
        self._refresh_if_stale()
        return self._quiet

    def _refresh_if_stale(self) -> None:
        if self._is_stale:
            self._refresh()

    def _refresh(self) -> None:
        n = np.arange(1, N_TABLE + 1)
        ms = _rising(self.refined_ms())
        table = np.interp(n, self.n, ms)
        if len(ms) > 1:
            rise = (ms[-1] - ms[-2]) / (self.n[-1] - self.n[-2])
            table += np.maximum(n - self.n[-1], 0) * rise
        self._quiet = table.tolist()
        self._is_stale = False
        self._rows.clear()
        self._parts.clear()
        self._costs.clear()

    def _make_rows(self, width: int) -> npt.NDArray[np.float64]:
        table = self.table_of(width)
        rows = np.stack([table, table])
        if width == 1:
            # `back_ms` is due once, now or after another wide pass. The part that is likely to be
            # due then in any case is left out of all entries: only their differences matter.
            back_ms = self.back_ms * math.exp(self.log_speed)
            rows[0] -= _GOES_BACK * back_ms
            rows[0, 0] += back_ms
        rows.flags.writeable = False
        return rows


def extended(table: npt.NDArray[np.float64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """(..., n) milliseconds of passes over `n` tokens by tables (..., N_TABLE); beyond those their
    last slope goes on."""
    beyond = np.maximum(n - N_TABLE, 0) * (table[..., -1:] - table[..., -2:-1])
    return table[..., np.minimum(n, N_TABLE) - 1] + beyond


def _rising(values: list[float]) -> npt.NDArray[np.float64]:
    """Isotonic regression: the nearest values that never fall, by least squares, as a pass over
    more tokens never costs less. Source: pool adjacent violators (Ayer et al. 1955)."""
    blocks: list[tuple[float, int]] = []  # mean, length
    for value in values:
        mean, n = value, 1
        while blocks and blocks[-1][0] > mean:
            other, m = blocks.pop()
            mean, n = (mean * n + other * m) / (n + m), n + m
        blocks.append((mean, n))
    return np.repeat([mean for mean, _ in blocks], [n for _, n in blocks])
