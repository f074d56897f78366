"""A team's server on one machine: vLLM with our drafter, beside vLLM's own ways of drafting.

    python -m codespec_bench.maintainers.team [ROOT] [--suffix] [--n 10]

`make team` calls it. Installs the engine, indexes a repository, starts an engine for each way and
asks each for the same places, greedily: each engine meets the repository for the first time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codespec.config import Settings
from codespec.errors import CodespecError

from ..demo import PACKAGE, fetch, index
from ..engine_client import EngineClient, EngineRun
from ..served_places import ServedPlace, served_places
from .team_engine import DRAFTER, N_DRAFTED, TeamEngine

LENGTHS = (64, 16)
AT_ONCE = 8
WORKSPACE = "team"
PLAIN, OURS = "plain", "codespec"

console = Console(highlight=False)


def drafting_of(name: str) -> Mapping[str, object] | None:
    """The engine's `--speculative-config` of a way; None for plain decoding."""
    k = {"num_speculative_tokens": N_DRAFTED}
    ways: dict[str, Mapping[str, object] | None] = {
        PLAIN: None,
        "ngram": {"method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 8, **k},
        "suffix": {"method": "suffix", **k},
        OURS: {"method": "custom_class", "model": DRAFTER, **k},
    }
    return ways[name]


def runs_of(
    engine: TeamEngine, name: str, root: Path, places: Sequence[ServedPlace]
) -> dict[str, EngineRun]:
    """Answers of one way: 64 tokens a place, 16, and 64 with several at once. A way that remembers
    texts meets 16 and 64 tokens in engines of their own."""
    # A budget for machines that do other things; the curve of the place where free width is.
    settings = {
        "workspaces": {WORKSPACE: str(root)}, "budget_ms": 50, "threads": 1, "learns_cost": False,
    }  # fmt: skip
    found: dict[str, EngineRun] = {}
    for lengths in ((16,), (64,)) if name in ("suffix", OURS) else ((64, 16),):
        with engine.running(name, drafting_of(name), settings) as port:
            client = EngineClient(port, WORKSPACE if name == OURS else "")
            for n in lengths:
                found[str(n)] = client.run(places, n)
            if 64 in lengths:
                found["at once"] = client.run(places, 64, AT_ONCE)
    return found


def table_of(runs: Mapping[str, Mapping[str, EngineRun]], n_places: int) -> Table:
    table = Table(title=f"{n_places} places, greedy, first contact")
    table.add_column("drafts")
    for title in ("steps, 64 tokens", "steps, 16", f"{AT_ONCE} at once", "right", "s", "equal"):
        table.add_column(title, justify="right")
    plain = runs[PLAIN]
    for name, run in runs.items():
        long, short, together = run["64"], run["16"], run["at once"]
        n_equal = sum(a == b for a, b in zip(long.tokens, plain["64"].tokens, strict=True))
        n_together = sum(a == b for a, b in zip(together.tokens, plain["64"].tokens, strict=True))
        right = f"{long.accepted / long.drafted:.2f}" if long.drafted else ""
        equal = f"{n_equal} and {n_together} of {n_places}"
        numbers = (long.steps, short.steps, together.steps)
        table.add_row(name, *map(str, numbers), right, f"{long.s:.1f}", equal)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description="vLLM with drafts from a repository.")
    parser.add_argument("root", type=Path, nargs="?", help="a repository; else one is fetched")
    parser.add_argument("--suffix", action="store_true", help="also vLLM's suffix drafting")
    parser.add_argument("--n", type=int, default=10, help="places of each of two kinds")
    given = parser.parse_args()
    try:
        engine = TeamEngine()
        engine.install(given.suffix)
        root = (given.root or fetch(PACKAGE)).resolve()
        index(root, Settings())
        places = served_places(root, given.n)
        runs: dict[str, dict[str, EngineRun]] = {}
        for name in (PLAIN, "ngram", *(["suffix"] if given.suffix else []), OURS):
            console.print(f"{name} ...")
            runs[name] = runs_of(engine, name, root, places)
        console.print(table_of(runs, len(places)))
    except CodespecError as e:
        console.print(f"Error: {e}", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
