"""The simulation beside a real engine that batches: vLLM's CPU build with the bundled model, as
`make team` installs it.

First T(n) of that engine is measured on this machine, at rest; then the same arrivals are simulated
and played for real, key by key, each cancelled by the next.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from rich.console import Console
from rich.table import Table

from codespec.backends.registry import open_vocabulary, target_of
from codespec.config import Settings
from codespec.types import Tokenizer

from ..history import Hunk
from ..maintainers.team_engine import TeamEngine
from .arrivals import Ask, asks_of
from .engines import steps_through
from .simulation import LATE_MS, Outcome, SimulatedEngine, simulate

_BLOCK = 128
"""Tokens of a block of vLLM's prefix cache on a CPU."""
_MOST_ROWS, _BUDGET = 16, 2048
_AT_ONCE = (1, 2, 4, 8, 16)
_READ = (64, 256, 1024)
_REPEATS = 5
_N_WRITTEN = 33


def check(hunks: Sequence[Hunk], people: Sequence[int], seconds: float, console: Console) -> None:
    """Print p50 and p95 as predicted and as measured, side by side. Raises: CodespecError."""
    team = TeamEngine()
    team.install()
    prompter = Prompter(Settings())
    table = Table("people", title="milliseconds, predicted and measured")
    for title in ("asked", "p50", "p95", "answered before the next key"):
        table.add_column(title, justify="right")
    rows = list[dict[str, object]]()
    with team.running("capacity") as port:
        engine = asyncio.run(measured(port, prompter.most_id))
        console.print("T(n), ms: " + ", ".join(f"{n}: {engine.step_ms(n):.1f}" for n in _shown()))
        console.print(f"outside of the engine: {engine.outside_ms:.1f} ms")
        for n in people:
            asks, prompts = prompter.spelled(asks_of(hunks, n, seconds, seed=n))
            said = simulate(asks, engine, None, seed=n)
            real = asyncio.run(played(port, asks, prompts))
            table.add_row(
                str(n), str(len(asks)), *(_both(said.quantile_ms(q), real.quantile_ms(q))
                for q in (0.5, 0.95)), f"{said.answered:.2f}, {real.answered:.2f}",
            )  # fmt: skip
            rows.append({"people": n, "asked": len(asks), "predicted": _figures(said),
                         "measured": _figures(real)})  # fmt: skip
    console.print(table)
    print(json.dumps({"bench": "capacity check", "seconds": seconds, "rows": rows}))


def _shown() -> tuple[int, ...]:
    return (*_AT_ONCE, *_READ)


def _both(said: float, real: float) -> str:
    return f"{said:.0f}, {real:.0f}"


def _figures(outcome: Outcome) -> dict[str, float]:
    return {
        "p50_ms": round(outcome.quantile_ms(0.5), 1),
        "p95_ms": round(outcome.quantile_ms(0.95), 1),
        "answered": round(outcome.answered, 3),
    }


class Prompter:
    """Spells requests in ids of the bundled model, as codespec writes them."""

    def __init__(self, settings: Settings) -> None:
        model = open_vocabulary(target_of(settings.model))
        self._tokenizer: Tokenizer = model.tokenizer
        assert model.info.fim is not None
        self._fim = model.info.fim
        self._window = settings.completion
        self.most_id = self._tokenizer.n_vocab

    def spelled(self, asks: Sequence[Ask]) -> tuple[list[Ask], list[list[int]]]:
        """The requests with the lengths of their real prompts, and these."""
        before = dict[int, list[int]]()
        counted, prompts = list[Ask](), list[list[int]]()
        for ask in asks:
            ids = self._ids(ask)
            last = before.get(ask.person, [])
            n_common = next(
                (i for i, (a, b) in enumerate(zip(ids, last, strict=False)) if a != b),
                min(len(ids), len(last)),
            )
            before[ask.person] = ids
            prompts.append(ids)
            counted.append(replace(ask, above=0, right=0, line=len(ids), n_common=n_common))
        return counted, prompts

    def _ids(self, ask: Ask) -> list[int]:
        typed = ask.hunk.prefix + ask.hunk.text[: ask.end]
        cut = typed.rfind("\n") + 1
        above = self._encode(typed[:cut])[-self._window.n_prefix_tokens :]
        right = self._encode(ask.hunk.suffix)[: self._window.n_suffix_tokens]
        fim = self._fim
        return [fim.prefix, *above, fim.suffix, *right, fim.middle, *self._encode(typed[cut:])]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).tolist()


async def measured(port: int, most_id: int) -> SimulatedEngine:
    """T(n) of an engine at rest: steps over as many rows as write, and over parts of prompts."""
    chance = random.Random(1)

    async def took_ms(at_once: int, n_prompt: int, n_out: int) -> float:
        found = list[float]()
        for _ in range(_REPEATS):
            prompts = [
                [chance.randrange(100, most_id) for _ in range(n_prompt)] for _ in range(at_once)
            ]
            start = time.perf_counter()
            await asyncio.gather(*(_asked(port, prompt, n_out) for prompt in prompts))
            found.append((time.perf_counter() - start) * 1e3)
        return median(found)

    await took_ms(1, 32, 8)  # the first request compiles
    points = dict[int, float]()
    for n in _AT_ONCE:
        whole, begun = await took_ms(n, 32, _N_WRITTEN), await took_ms(n, 32, 1)
        points[n] = max(0.01, (whole - begun) / (_N_WRITTEN - 1))
    outside_ms = max(0.0, await took_ms(1, 1, 1) - points[1])
    for n in _READ:
        points[n] = max(points[_AT_ONCE[-1]], await took_ms(1, n, 1) - outside_ms)
    return SimulatedEngine(
        steps_through(list(points.items())), 0.0, _BUDGET, _MOST_ROWS, _BLOCK, outside_ms
    )


async def played(port: int, asks: Sequence[Ask], prompts: Sequence[Sequence[int]]) -> Outcome:
    """Play requests at their times."""
    done = Outcome(n_asked=len(asks))
    start = time.perf_counter()

    async def one(ask: Ask, prompt: Sequence[int]) -> None:
        await asyncio.sleep(max(0.0, ask.at_s - (time.perf_counter() - start)))
        try:
            await asyncio.wait_for(_asked(port, prompt, ask.n_out), ask.until_s - ask.at_s)
        except asyncio.TimeoutError:
            done.n_cancelled += 1
            done.n_late += (ask.until_s - ask.at_s) * 1e3 > LATE_MS
            return
        done.ms.append((time.perf_counter() - start - ask.at_s) * 1e3)

    await asyncio.gather(*map(one, asks, prompts))
    return done


async def _asked(port: int, prompt: Sequence[int], n_out: int) -> None:
    """Ask for exactly so many tokens, and wait for all. Closes the connection if it is cancelled,
    which ends the request in the engine."""
    body = {"model": "codespec-base", "prompt": list(prompt), "max_tokens": n_out,
            "temperature": 0, "ignore_eos": True}  # fmt: skip
    raw = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw
        )
        answer = await reader.read()
        if b" 200 " not in answer.partition(b"\r\n")[0]:
            raise OSError(f"the engine answered {answer[:40]!r}")
    finally:
        writer.close()
