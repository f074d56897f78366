"""The simulation of a server that batches, against what can be said of it by hand."""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from codespec.config import Settings
from codespec_bench.capacity.__main__ import ANSWERED, Capacity, plot_of, table_of
from codespec_bench.capacity.arrivals import LOCAL, Ask, asks_of, n_out
from codespec_bench.capacity.check import Prompter, played
from codespec_bench.capacity.engines import EngineKind, kinds, measured_passes, steps_through
from codespec_bench.capacity.simulation import Drafts, Outcome, SimulatedEngine, simulate
from codespec_bench.history import Hunk

HUNK = Hunk(
    "a.py",
    "import os\n\n\n" * 200,
    "def first(path):\n    with open(path) as file:\n        return file.read()\n\n\nLAST = 1\n",
    "\n\ndef main():\n    pass\n" * 20,
    "",
)
FLAT = SimulatedEngine(step_ms=lambda _: 10.0, outside_ms=0.0, budget=64, block=16)


def ask(at_s: float, *, until_s: float = 1e3, n_prompt: int = 1, n_common: int = 0, n: int = 1):
    return Ask(0, at_s, until_s, n_prompt, 0, 0, n_common, n, HUNK, 0)


def times(asks: Sequence[Ask], engine: SimulatedEngine = FLAT, drafts: Drafts | None = None):
    return [round(ms, 6) for ms in simulate(asks, engine, drafts, 0).ms]


def test_a_text_takes_a_step_a_token() -> None:
    assert times([ask(1.0, n=5)]) == [50.0]


def test_texts_side_by_side_share_steps() -> None:
    # The second one comes in the first one's first step, and waits for its end.
    assert times([ask(0.0, n=3), ask(0.004, n=2)]) == [30.0, 26.0]
    outcome = simulate([ask(0.0, n=3), ask(0.004, n=2)], FLAT, None, 0)
    assert outcome.n_steps == 3
    assert outcome.busy_s == pytest.approx(0.03)


def test_a_prompt_is_read_in_parts_from_the_last_whole_block_on() -> None:
    assert times([ask(0.0, n_prompt=64)]) == [10.0]
    assert times([ask(0.0, n_prompt=65)]) == [20.0]
    assert times([ask(0.0, n_prompt=200, n_common=150)]) == [10.0]  # 56 of 200
    assert times([ask(0.0, n_prompt=200, n_common=143)]) == [20.0]  # 72 of 200
    assert times([ask(0.0, n_prompt=160, n_common=160)]) == [10.0]  # the last token at least


def test_rows_that_write_go_before_prompts() -> None:
    """A long prompt gets what they leave of a step."""
    asks = [ask(0.0, n=9), ask(0.001, n_prompt=127)]
    assert sorted(times(asks)) == [39.0, 90.0]


def test_drafts_that_are_right_save_steps_and_widen_them() -> None:
    widths = list[int]()

    def step_ms(n: int) -> float:
        widths.append(n)
        return 10.0

    engine = SimulatedEngine(step_ms, outside_ms=0.0)
    assert times([ask(0.0, n=9)], engine, Drafts([(3, 3)], row_us=0.0)) == [30.0]
    assert widths == [1, 4, 4]  # prompt, one and three, one and three
    assert times([ask(0.0, n=9)], engine, Drafts([(3, 0)], row_us=0.0)) == [90.0]


def test_drafts_narrow_with_the_batch_and_cost_their_time() -> None:
    asks = [ask(0.0, n=64) for _ in range(8)]
    narrow = simulate(asks, FLAT, Drafts([(8, 8)], row_us=0.0, most_tokens=8), 0)
    wide = simulate(asks, FLAT, Drafts([(8, 8)], row_us=0.0), 0)
    assert narrow.n_steps > wide.n_steps
    slow = simulate(asks, FLAT, Drafts([(8, 8)], row_us=1000.0), 0)
    assert slow.busy_s > wide.busy_s
    assert slow.n_steps == wide.n_steps


def test_the_next_key_cancels_and_late_ones_count() -> None:
    outcome = simulate([ask(0.0, until_s=0.035, n=9), ask(0.0, n=9)], FLAT, None, 0)
    assert len(outcome.ms) == 1
    assert (outcome.n_cancelled, outcome.n_late) == (1, 0)
    outcome = simulate([ask(0.0, until_s=0.5, n=64)], FLAT, None, 0)
    assert (outcome.n_cancelled, outcome.n_late, outcome.answered) == (1, 1, 0.0)
    assert outcome.quantile_ms(0.95) == math.inf


def test_more_requests_than_rows_wait() -> None:
    engine = SimulatedEngine(lambda _: 10.0, max_rows=1, outside_ms=0.0)
    assert times([ask(0.0, n=2), ask(0.0, n=2)], engine) == [20.0, 40.0]


def test_one_request_at_a_time_waits_as_queueing_theory_says() -> None:
    """M/D/1: at a load of 0.7 the mean wait is 0.7 / (2 (1 - 0.7)) services (Pollaczek)."""
    chance, now, asks = random.Random(5), 0.0, list[Ask]()
    for _ in range(20_000):
        now += chance.expovariate(70.0)
        asks.append(ask(now))
    one = SimulatedEngine(lambda _: 10.0, max_rows=1, outside_ms=0.0)
    outcome = simulate(asks, one, None, 0)
    mean_ms = sum(outcome.ms) / len(outcome.ms)
    assert mean_ms == pytest.approx(10.0 * (1 + 0.7 / (2 * 0.3)), rel=0.05)


def test_people_type_and_what_one_types_depends_on_no_other() -> None:
    hunks = [HUNK]
    few, many = (asks_of(hunks, n, 30.0, 7) for n in (2, 5))
    assert [a for a in many if a.person < 2] == few
    assert asks_of(hunks, 2, 30.0, 8) != few
    assert [a.at_s for a in many] == sorted(a.at_s for a in many)
    for each in many:
        assert each.at_s < each.until_s
        assert each.n_common <= each.n_prompt
        assert 1 <= each.n_out <= 64
    answered = len(asks_of(hunks, 5, 60.0, 7, local=0.5)) / len(asks_of(hunks, 5, 60.0, 7, local=0))
    assert answered == pytest.approx(0.5, abs=0.1)
    assert 0 < LOCAL < 1


def test_what_is_wanted_is_the_line_or_from_its_beginning_the_lines_below() -> None:
    whole = n_out(HUNK, 0)
    assert n_out(HUNK, 4) < whole
    assert n_out(HUNK, len("def first(path):")) == 1
    assert n_out(HUNK, len(HUNK.text)) == 1


def test_steps_go_through_their_points_and_on() -> None:
    step_ms = steps_through([(1, 4.0), (5, 6.0), (9, 10.0)])
    assert [step_ms(n) for n in (1, 3, 5, 7, 9, 10)] == [4.0, 5.0, 6.0, 8.0, 10.0, 11.0]


def test_a_faster_engine_holds_more_people_and_drafts_hold_more_still() -> None:
    drafts = Drafts([(4, 2), (4, 0), (0, 0)])

    def of(ms: float, way: Drafts | None) -> Capacity:
        engine = SimulatedEngine(lambda n: ms * (1 + n / 32), max_rows=16)
        return Capacity([HUNK], 6.0, LOCAL, engine, way)

    def people(ms: float, way: Drafts | None) -> int:
        return of(ms, way).people(1)

    slow, fast = people(12.0, None), people(6.0, None)
    assert 0 < slow < fast
    assert people(12.0, drafts) > slow
    full = of(12.0, None).outcome(slow, 1)
    assert full.quantile_ms(0.95) <= 300.0
    assert full.answered >= ANSWERED * of(12.0, None).alone(slow, 1)


def test_the_table_s_servers_and_drafts_are_sound() -> None:
    for kind in kinds():
        assert kind.engine.step_ms(1) <= kind.engine.step_ms(64) <= kind.engine.step_ms(512)
        assert kind.source == "roofline" or kind.source.startswith("measured: ")
    passes = measured_passes()
    assert len(passes) > 500
    assert all(0 <= accepted <= drafted <= 8 for drafted, accepted in passes)
    assert 1.5 < 1 + sum(a for _, a in passes) / len(passes) < 2.5


class ScriptedEngine:
    """Answers requests at once, but never those that ask for 64 tokens."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.left = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        assert length is not None
        body = json.loads(await reader.readexactly(int(length[1])))
        self.asked.append(body)
        if body["max_tokens"] == 64:
            await reader.read()
            self.left += 1
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()


def test_arrivals_are_played_and_the_next_key_ends_a_request() -> None:
    engine = ScriptedEngine()

    async def play() -> Outcome:
        server = await asyncio.start_server(engine.answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        asks = [ask(0.0, n=3), ask(0.01, until_s=0.05, n=64), ask(0.02, until_s=0.4, n=64)]
        done = await played(port, asks, [[1, 2], [3], [4]])
        while engine.left < 2:
            await asyncio.sleep(0.001)
        server.close()
        return done

    done = asyncio.run(asyncio.wait_for(play(), 60.0))
    assert (len(done.ms), done.n_cancelled, done.n_late) == (1, 2, 1)
    assert sorted(body["prompt"] for body in engine.asked) == [[1, 2], [3], [4]]
    assert all(body["ignore_eos"] for body in engine.asked)


def test_prompts_are_those_of_the_model_and_share_what_did_not_change() -> None:
    prompter = Prompter(Settings())
    end = HUNK.text.index("open")
    asks = [replace(ask(float(at), n=2), end=at) for at in (end, end + 2, len(HUNK.text))]
    counted, prompts = prompter.spelled(asks)
    assert [each.n_prompt for each in counted] == list(map(len, prompts))
    assert counted[0].n_common == 0
    assert counted[1].n_common >= counted[1].n_prompt - 3  # the end of a line alone
    assert counted[2].n_common < counted[2].n_prompt // 2 + 512
    for one, next_one, each in zip(prompts, prompts[1:], counted[1:], strict=False):
        assert one[: each.n_common] == next_one[: each.n_common]
    assert max(map(len, prompts)) <= 1024 + 256 + 64
    assert max(map(max, prompts)) < prompter.most_id


def test_a_row_of_the_table_and_the_plot() -> None:
    kind = EngineKind("slow", "measured: by hand", SimulatedEngine(lambda n: 12.0 + n, max_rows=8))
    capacity = Capacity([HUNK], 4.0, LOCAL, kind.engine, None)
    row = capacity.holding(kind, 3)
    assert row.least <= row.people <= row.most
    assert row.people > 0
    assert row.p50_ms <= row.p95_ms <= 300.0
    assert ANSWERED * row.alone <= row.answered <= 1.0
    assert row.busy > 0.0
    console = Console(record=True, width=160, file=io.StringIO())
    console.print(table_of([row]))
    assert f"{row.people} ({row.least} to {row.most})" in console.export_text()
    drawn = plot_of({"slow, plain": capacity}, row.people, 2)
    assert drawn.startswith("<svg ")
    assert "people typing at once" in drawn
    assert "currentColor" not in drawn
