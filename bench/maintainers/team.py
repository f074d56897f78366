"""A team's server on one machine: vLLM with our drafter, beside vLLM's own ways of drafting.

    python -m codespec_bench.maintainers.team [ROOT] [--suffix] [--n 10] [--turns 3] [--port 8000]

`make team` calls it. Installs the engine, indexes a repository, starts an engine for each way and
asks each for the same places, greedily: each engine meets the repository for the first time. Then
one engine is asked with drafts and without in turns, for the time that they save, and an editor's
session types at the places with that engine as its model. Prints tables, and a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from codespec.config import Settings
from codespec.errors import CodespecError

from ..demo import PACKAGE, fetch, index
from ..engine_client import EngineClient, EngineRun
from ..places import places_in
from ..served_places import ServedPlace, served_places
from .team_engine import DRAFTER, N_DRAFTED, TeamEngine
from .team_session import TypedSession, typed_session

LENGTHS = (64, 16)
AT_ONCE = 8
WORKSPACE = "team"
PLAIN, OURS = "plain", "codespec"
MOST_STEPS = 0.85
"""Bound of our steps, in steps of each other way that drafts."""
LEAST_FASTER = {1: 2.0, AT_ONCE: 1.0}
"""Bounds of time without drafts by time with them, by requests at once."""

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


# A budget for machines that do other things.
_SERVING = {"budget_ms": 50, "threads": 1, "default": WORKSPACE}


def runs_of(
    engine: TeamEngine, name: str, root: Path, places: Sequence[ServedPlace]
) -> dict[str, EngineRun]:
    """Answers of one way: 64 tokens a place, 16, and 64 with several at once. A way that remembers
    texts meets 16 and 64 tokens in engines of their own."""
    # Steps that others can repeat: the curve is that of an engine with free width, and stays so.
    settings = {"workspaces": {WORKSPACE: str(root)}, "learns_cost": False, **_SERVING}
    found: dict[str, EngineRun] = {}
    for lengths in ((16,), (64,)) if name in ("suffix", OURS) else ((64, 16),):
        with engine.running(name, drafting_of(name), settings) as port:
            client = EngineClient(port, WORKSPACE if name == OURS else "")
            for n in lengths:
                found[str(n)] = client.run(places, n)
            if 64 in lengths:
                found["at once"] = client.run(places, 64, AT_ONCE)
    return found


def saved_time(port: int, places: Sequence[ServedPlace], n_turns: int) -> dict[int, float]:
    """Time without drafts by time with them, of one engine, asked in turns; by requests at once."""
    ways = EngineClient(port, WORKSPACE, drafts=False), EngineClient(port, WORKSPACE)
    faster: dict[int, float] = {}
    for at_once in LEAST_FASTER:
        for way in ways:  # what is compiled at first is no way's time
            way.run(places, 64, at_once)
        times = [[way.run(places, 64, at_once).s for way in ways] for _ in range(n_turns)]
        plain_s, drafted_s = map(sum, zip(*times, strict=True))
        faster[at_once] = plain_s / drafted_s
    return faster


def last_run(
    engine: TeamEngine, root: Path, places: Sequence[ServedPlace], n: int, n_turns: int, port: int
) -> tuple[dict[int, float], TypedSession]:
    """(time saved, an editor's session) with one engine that drafts, and learns what its steps
    cost. port: see `running`."""
    settings = {"workspaces": {WORKSPACE: str(root)}, **_SERVING}
    with engine.running("session", drafting_of(OURS), settings, port=port) as found:
        console.print("asking with drafts and without, in turns ...")
        faster = saved_time(found, places, n_turns) if n_turns else {}
        console.print("an editor types, its model on the engine ...")
        typed = [p for p in places_in(root, n, ("line", "block"), per_file=1) if p.truth]
        return faster, typed_session(root, typed, f"http://127.0.0.1:{found}/v1")


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


def checks_of(
    runs: Mapping[str, Mapping[str, EngineRun]], faster: Mapping[int, float]
) -> dict[str, tuple[float, float, bool]]:
    """Figure, its bound, and whether it holds, of each promise."""
    plain, ours = runs[PLAIN], runs[OURS]
    found: dict[str, tuple[float, float, bool]] = {}
    for title, run in (("one at a time", ours["64"]), (f"{AT_ONCE} at once", ours["at once"])):
        n = len(plain["64"].tokens)
        n_equal = sum(a == b for a, b in zip(run.tokens, plain["64"].tokens, strict=True))
        found[f"texts equal to plain, {title}"] = float(n_equal), float(n), n_equal == n
    for name in runs.keys() - {PLAIN, OURS}:
        for length in map(str, LENGTHS):
            share = ours[length].steps / runs[name][length].steps
            found[f"steps by those of {name}, {length} tokens"] = (
                share, MOST_STEPS, share <= MOST_STEPS,
            )  # fmt: skip
    for at_once, times in faster.items():
        least = LEAST_FASTER[at_once]
        found[f"times as fast, {at_once} at once"] = times, least, times >= least
    return found


def print_checks(checks: Mapping[str, tuple[float, float, bool]]) -> None:
    table = Table("promise", "figure", "bound", "holds", title="promises")
    for name, (figure, bound, holds) in checks.items():
        table.add_row(name, f"{figure:.3g}", f"{bound:.3g}", "yes" if holds else "no")
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description="vLLM with drafts from a repository.")
    parser.add_argument("root", type=Path, nargs="?", help="a repository; else one is fetched")
    parser.add_argument("--suffix", action="store_true", help="also vLLM's suffix drafting")
    parser.add_argument("--n", type=int, default=10, help="places of each of two kinds")
    parser.add_argument("--turns", type=int, default=3, help="turns for time; 0: none")
    parser.add_argument("--port", type=int, default=0, help="port of the session's engine")
    given = parser.parse_args()
    try:
        engine = TeamEngine()
        engine.install(given.suffix)
        root = (given.root or fetch(PACKAGE)).resolve()
        index(root, Settings())
        places = served_places(root, given.n)
        runs: dict[str, dict[str, EngineRun]] = {}
        for name in (PLAIN, "ngram", *(["suffix"] if given.suffix else []), OURS):
            console.print(f"{name}: vLLM starts, which takes a minute, and is asked ...")
            runs[name] = runs_of(engine, name, root, places)
        faster, session = last_run(engine, root, places, given.n, given.turns, given.port)
    except CodespecError as e:
        console.print(f"Error: {e}", markup=False)
        return 1
    console.print(table_of(runs, len(places)))
    console.print(
        f"An editor's session with the model on {session.backend}: {session.n_places} places,"
        f" {session.n_keys} keys, {session.n_suggestions} suggestions, {session.n_right} of them"
        f" begin with the line that stood there; median {session.median_ms:.0f} ms from the key."
    )
    checks = checks_of(runs, faster)
    print_checks(checks)
    figures = {
        "runs": {
            name: {length: _figures(run) for length, run in found.items()}
            for name, found in runs.items()
        },
        "session": msgspec.to_builtins(session),
        "promises": {
            name: {"figure": figure, "bound": bound, "holds": holds}
            for name, (figure, bound, holds) in checks.items()
        },
    }
    print(json.dumps(figures))
    return 0


def _figures(run: EngineRun) -> dict[str, float]:
    """The figures of a run, without its tokens."""
    found = msgspec.to_builtins(run)
    del found["tokens"]
    return found


if __name__ == "__main__":
    sys.exit(main())
