"""How many people who type at once one server holds.

python -m codespec_bench.capacity [ROOT] [--seeds 5] [--seconds 30] [--plot FILE.svg]
python -m codespec_bench.capacity check [ROOT]      # the model beside a real engine
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from codespec.errors import CodespecError, InputError

from .. import plots
from ..history import History, Hunk
from .arrivals import LOCAL, Ask, asks_of
from .check import check
from .engines import EngineKind, kinds, measured_passes
from .simulation import LATE_MS, Drafts, Outcome, SimulatedEngine, simulate

ANSWERED = 0.9
"""Share of what would be answered without drafts if each had the server alone, below which it is
full: one bar for both ways."""
_MOST_PEOPLE = 512
_ENOUGH = 16
"""People whose requests in a run are enough for its shares."""
_N_COMMITS = 40


@dataclass(frozen=True, slots=True)
class Holding:
    """People that a server holds: the median over seeds, and the least and most of them. The rest
    is of the median seed, at that many people.

    answered: share of the requests that were answered before the next key; alone: that of the same
    people without drafts, each with a server for themselves.
    """

    server: str
    source: str
    drafts: bool
    people: int
    least: int
    most: int
    asked_a_s: float
    p50_ms: float
    p95_ms: float
    answered: float
    alone: float
    busy: float


class Capacity:
    """Simulations of an engine with the same people, of one history."""

    def __init__(
        self,
        hunks: Sequence[Hunk],
        seconds: float,
        local: float,
        engine: SimulatedEngine,
        drafts: Drafts | None,
    ) -> None:
        self._hunks, self._seconds, self._local = hunks, seconds, local
        self._engine, self._drafts = engine, drafts
        self._alone = dict[tuple[int, int, float], tuple[int, int]]()

    def asks(self, n_people: int, seed: int) -> list[Ask]:
        return asks_of(self._hunks, n_people, self.seconds_of(n_people), seed, self._local)

    def outcome(self, n_people: int, seed: int) -> Outcome:
        return simulate(self.asks(n_people, seed), self._engine, self._drafts, seed)

    def seconds_of(self, n_people: int) -> float:
        """Seconds of a run: more with few people, so that none has few requests."""
        return self._seconds * max(1, _ENOUGH // n_people)

    def alone(self, n_people: int, seed: int) -> float:
        """Share of the requests that would be answered without drafts if each had the engine alone:
        the same requests are compared, so chance counts little."""
        seconds = self.seconds_of(n_people)
        by_person = defaultdict[int, list[Ask]](list)
        for ask in self.asks(n_people, seed):
            by_person[ask.person].append(ask)
        n_answered = n_asked = 0
        for person, asks in by_person.items():
            key = person, seed, seconds
            if key not in self._alone:
                outcome = simulate(asks, self._engine, None, seed)
                self._alone[key] = len(outcome.ms), outcome.n_asked
            n_answered += self._alone[key][0]
            n_asked += self._alone[key][1]
        return n_answered / max(1, n_asked)

    def people(self, seed: int) -> int:
        """Most people that the engine holds, to a sixteenth; 0 for none."""

        def holds(n: int) -> bool:
            outcome = self.outcome(n, seed)
            is_quick = outcome.quantile_ms(0.95) <= LATE_MS
            return is_quick and outcome.answered >= ANSWERED * self.alone(n, seed)

        most = 1
        while most <= _MOST_PEOPLE and holds(most):
            most *= 2
        least = most // 2
        while most - least > max(1, least // 16):
            middle = (least + most) // 2
            least, most = (middle, most) if holds(middle) else (least, middle)
        return least

    def holding(self, kind: EngineKind, n_seeds: int) -> Holding:
        """A row of the table."""
        found = sorted((self.people(seed), seed) for seed in range(n_seeds))
        people, seed = found[n_seeds // 2]
        n = max(1, people)
        full, seconds = self.outcome(n, seed), self.seconds_of(n)
        return Holding(
            server=kind.name,
            source=kind.source,
            drafts=self._drafts is not None,
            people=people,
            least=found[0][0],
            most=found[-1][0],
            asked_a_s=round(full.n_asked / seconds, 1),
            p50_ms=round(full.quantile_ms(0.5), 1),
            p95_ms=round(full.quantile_ms(0.95), 1),
            answered=round(full.answered, 3),
            alone=round(self.alone(n, seed), 3),
            busy=round(full.busy_s / seconds, 2),
        )


def table_of(rows: Sequence[Holding]) -> Table:
    table = Table(
        "server", "T(n)", "drafts", title=f"people typing at once, p95 <= {LATE_MS:.0f} ms"
    )
    for title in ("people", "asked a s", "p50, p95 ms", "answered (alone)"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row.server, row.source, "yes" if row.drafts else "no",
            f"{row.people} ({row.least} to {row.most})", f"{row.asked_a_s:.0f}",
            f"{row.p50_ms:.0f}, {row.p95_ms:.0f}", f"{row.answered:.2f} ({row.alone:.2f})",
        )  # fmt: skip
    return table


def plot_of(of_ways: Mapping[str, Capacity], most: int, n_seeds: int) -> str:
    """Share of the requests that are answered before the next key, by people and way."""
    counts = sorted({max(1, round(most * n / 10)) for n in range(1, 16)})
    series = dict[str, tuple[list[float], list[float]]]()
    for name, capacity in of_ways.items():
        shares = [
            median(capacity.outcome(n, seed).answered for seed in range(n_seeds)) for n in counts
        ]
        series[name] = list(map(float, counts)), shares
    drawn = plots.lines(series, "people typing at once", "answered before the next key, share")
    # As a file it is on no page whose colour it could take.
    head, _, rest = drawn.replace("currentColor", "#24292f").partition(">")
    said = "; ".join(f"{name} {ys[0]:.2f} to {ys[-1]:.2f}" for name, (_, ys) in series.items())
    about = (
        "<title>Requests answered before the next key</title>"
        f"<desc>Share by people typing at once, {counts[0]} to {counts[-1]}: {said}.</desc>"
    )
    head = head.replace("<svg ", '<svg style="background: #ffffff" ', 1)
    return f"{head}>{about}{rest}"


def hunks_of(root: Path, until: str = "HEAD") -> list[Hunk]:
    """Hunks of the history, oldest first, at least one. Raises: InputError."""
    commits = History(root).commits(_N_COMMITS, until)
    hunks = [hunk for commit in commits for hunk in commit.hunks]
    if not hunks:
        raise InputError(f"{root}: nothing to type in its history", "Give a clone with history.")
    return hunks


def main() -> int:
    parser = argparse.ArgumentParser(description="People that one server holds.")
    parser.add_argument("command", nargs="?", default="", help="check: beside a real engine")
    parser.add_argument("root", type=Path, nargs="?", default=Path(), help="whose history is typed")
    parser.add_argument("--until", default="HEAD", help="the last commit that is typed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--local", type=float, default=LOCAL, help="share of keys answered in view")
    parser.add_argument("--people", type=int, nargs="*", default=[1, 2, 4], help="of check")
    parser.add_argument("--plot", type=Path, help="write the shares answered by people as SVG")
    given = parser.parse_args()
    if given.command not in ("", "check"):
        given.root, given.command = Path(given.command), ""
    console = Console(highlight=False)
    try:
        hunks = hunks_of(given.root, given.until)
        if given.command == "check":
            check(hunks, given.people, given.seconds, console)
            return 0
        drafts, rows, shown = Drafts(measured_passes()), list[Holding](), dict[str, Capacity]()
        for kind in kinds():
            for name, way in (("plain", None), ("drafts", drafts)):
                capacity = Capacity(hunks, given.seconds, given.local, kind.engine, way)
                rows.append(capacity.holding(kind, given.seeds))
                if kind.source == "roofline":
                    shown[f"{kind.name}, {name}"] = capacity
                print(f"{kind.name}, {name}: {rows[-1].people}", file=sys.stderr, flush=True)
        console.print(table_of(rows))
        print(json.dumps({"bench": "capacity", "seconds": given.seconds, "seeds": given.seeds,
                          "rows": [asdict(row) for row in rows]}))  # fmt: skip
        if given.plot:
            most = max(row.people for row in rows[: len(shown)])
            given.plot.write_text(plot_of(shown, most, given.seeds), "utf-8")
    except CodespecError as e:
        console.print(f"Error: {e}", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
