"""Predicting how long decoding takes, on machines whose laws are known; ratios of many requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget
from codespec.drafters.base import Drafter
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import (
    NO_DRAFT,
    Context,
    Draft,
    PassState,
    SamplingParams,
    Tokens,
    Trace,
)
from codespec.verify.sampling import Sampler
from codespec_bench.peers import report
from codespec_bench.peers.base import Decoded, DecodingTask
from codespec_bench.peers.inprocess import LoopPeer
from codespec_bench.peers.run import PeerTally, ratio_interval, rows
from codespec_bench.predicted import (
    BEFORE_SINGLE,
    CONTEXTS,
    WIDTHS,
    PassTimer,
    Run,
    TimedPasses,
)
from tests.drafters import combined


class Machine(FakeTarget):
    """Passes take a known time on a clock of its own: by width, width before, context, and the
    number of passes since it slept."""

    def __init__(
        self,
        law: Callable[[int, int, int], float],
        cold: Callable[[int, int], float] = lambda n, n_since: 0.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.now = self.busy_s = 0.0
        self._law, self._cold = law, cold
        self._before, self._n_since = 0, 0

    def clock(self) -> float:
        return self.now

    def sleep(self, s: float) -> None:
        self._n_since = 0

    def decode(self, tokens: Tokens, draft: Draft) -> Any:
        n = len(tokens) + len(draft)
        s = (self._law(n, self._before, self.n_cached) + self._cold(n, self._n_since)) / 1e3
        self.busy_s += s
        self.now += s
        self._before = n
        self._n_since += 1
        return super().decode(tokens, draft)


def law(n: int, before: int, n_context: int) -> float:
    change = 0.2 * (n != before) + 0.03 * before * (n == 1 < before)
    return 1.0 + 0.3 * n + 0.5 * (n > 4) + change + n_context * (1e-3 + 2e-4 * n)


def measured(target: Machine, contexts: Sequence[int] = CONTEXTS) -> TimedPasses:
    timer = PassTimer(target, contexts, sleep=target.sleep)
    for _ in range(2):
        timer.round(1.0)
    return timer.costs()


def test_passes_cost_what_width_width_before_and_context_say() -> None:
    target = Machine(law)
    costs = measured(target)
    for n_context in (64, *CONTEXTS, 500, 1200):
        for widths in ([1, 1, 1], [1, 4, 1], [5, 5, 1, 2, 2, 16, 1]):
            befores = [BEFORE_SINGLE, *widths]
            expected = sum(law(n, b, n_context) for n, b in zip(widths, befores, strict=False))
            assert costs.ms(widths, n_context) == pytest.approx(expected, rel=1e-6)
    assert costs.ms([20], 500) == pytest.approx(law(20, 0, 500), rel=1e-6)


def test_the_first_passes_after_a_pause_cost_more() -> None:
    def cold(n: int, n_since: int) -> float:
        return max(0.0, 0.4 - 0.2 * n_since) / n

    def quick(n: int, before: int, n_context: int) -> float:
        return law(n, before, n_context) / 5

    target = Machine(quick, cold)
    costs = measured(target)
    for widths in ([1, 1, 1, 1], [1, 4, 1, 2], [16, 16, 8]):
        befores = [BEFORE_SINGLE, *widths]
        steady = sum(quick(n, b, 500) for n, b in zip(widths, befores, strict=False))
        expected = steady + sum(cold(n, k) for k, n in enumerate(widths))
        assert costs.ms(widths, 500) == pytest.approx(expected, rel=1e-6)


def test_passes_that_take_long_are_not_timed_cold() -> None:
    target = Machine(lambda n, before, n_context: 10.0, lambda n, n_since: 3.0 * (n_since == 0))
    assert not measured(target).cold


def test_a_model_that_takes_no_drafts() -> None:
    target = Machine(law, max_draft=0)
    costs = measured(target, (32,))
    assert costs.widths.tolist() == [1]
    assert costs.ms([1, 1], 32) == pytest.approx(2 * law(1, 1, 32))


def test_measuring_ends_with_its_time() -> None:
    target = Machine(lambda n, before, n_context: 1000.0)
    timer = PassTimer(target, (16,), budget_s=1.0, sleep=lambda s: None)
    for i in range(50):
        timer.round(i / 50)
    assert 0 < target.now < 8 * len(WIDTHS)


class Repeats(Drafter):
    """`Drafter` of two tokens, now and then, that takes 3 ms on the machine's clock."""

    name = "repeats"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._machine.now += 3e-3
        return Draft.chain(np.array([1, 2], np.int32)) if len(state.emitted) % 3 == 0 else NO_DRAFT


def test_the_time_of_a_run_follows_from_parts_measured_apart() -> None:
    target = Machine(law)
    costs = measured(target)
    context = Context(np.arange(300, dtype=np.int32) % 50)

    def run() -> tuple[Trace, float]:
        target.prefill(context.prompt, lambda: False)
        trace, started, busy_s = Trace(), target.now, target.busy_s
        chain = combined([Repeats(target)], target.info.n_vocab)
        completer = Completer(target, chain, target.clock)
        completer.run(context, Sampler(SamplingParams()), OutputLimits(40), trace=trace)
        trace.ms = (target.now - started) * 1e3
        return trace, trace.ms - (target.busy_s - busy_s) * 1e3

    run()  # reads the prompt
    (seen, _), (_, own_ms) = run(), run()
    assert sum(width > 1 for width in seen.pass_width) > 5
    predicted = costs.predicted_ms([Run(seen.pass_width, 300 + 20, own_ms)])
    assert predicted == pytest.approx(seen.ms, rel=0.02)


def test_an_end_token_counts_in_the_time_it_took() -> None:
    class Ends:
        target = Machine(law)

        @property
        def passes(self) -> Ends:
            return self

        def drafter(self, workspace: str, drafters: object) -> None: ...
        def decode(self, context: Context, max_tokens: int, chain: None) -> tuple[list[int], Trace]:
            return list(range(3)), Trace(n_tokens=3, n_target_passes=4, ms=8.0)

    peer = LoopPeer("plain", Ends(), ())  # pyright: ignore[reportArgumentType]
    context = Context(np.zeros(1, np.int32))
    assert peer.decode(DecodingTask(context, 9)).n_timed == 4
    assert peer.decode(DecodingTask(context, 3)).n_timed == 3


def requests(*ms: float) -> PeerTally:
    return PeerTally([[Decoded([1] * 10, m, 10, 5, 6, 5)] for m in ms])


def test_rows_say_how_sure_a_ratio_is() -> None:
    costs = measured(Machine(law))
    steady, shaky = [10.0] * 30, [4.0, 16.0] * 15
    tallies = {
        ("llama-server", "edits"): requests(*[m * 0.9 for m in steady]),
        ("codespec", "edits"): requests(*[m / 2 for m in steady]),
        ("plain", "edits"): requests(*steady),
        ("other", "edits"): requests(*shaky),
    }
    found = {str(row["config"]): row for row in rows(tallies, costs, {"model": "m"})}
    assert next(iter(found)) == "plain"
    assert found["codespec"]["ratio_to_plain"] == pytest.approx(2)
    assert found["codespec"]["ratio_low"] == pytest.approx(2)
    assert found["codespec"]["ratio_high"] == pytest.approx(2)
    assert found["codespec"]["ratio_to_best_other"] == pytest.approx(1.8)
    assert found["other"]["ratio_to_plain"] == pytest.approx(1)
    assert found["other"]["ratio_low"] < 0.9
    assert found["other"]["ratio_high"] > 1.1
    assert "ratio_to_best_other" not in found["llama-server"]
    # Both sides of a request are drawn together: what slows both down is no doubt about the ratio.
    low, high = ratio_interval(requests(*[m / 2 for m in shaky]), requests(*shaky))
    assert (low, high) == (pytest.approx(2), pytest.approx(2))


def test_our_own_work_is_told_by_request_and_by_pass(capsys: pytest.CaptureFixture[str]) -> None:
    ours = [
        Decoded(
            [1] * 10, 10.0, 10, n, 6, 5, Trace(ms=10.0, model_ms=9.5 - n * 0.08, begin_ms=0.5)
        )
        for n in (5, 15)
    ]  # fmt: skip
    tallies = {
        ("plain", "edits"): requests(10.0, 10.0),
        ("codespec", "edits"): PeerTally([[decoded] for decoded in ours]),
    }
    _, row = rows(tallies, measured(Machine(law)), {"model": "m", "backend": "cpu"})
    assert (row["begin_ms"], row["own_us"]) == (pytest.approx(0.5), pytest.approx(80))
    assert "own_us" not in rows({("plain", "edits"): requests(10.0)}, measured(Machine(law)), {})[0]
    tallies["other", "edits"] = requests(20.0, 20.0)
    report.print_rows(rows(tallies, measured(Machine(law)), {"model": "m", "backend": "cpu"}))
    said = capsys.readouterr().out
    assert "fastest other (95 %: 2.00 to 2.00); of its own 0.50 ms a request" in said
    assert "80 us a pass" in said


def test_a_single_request_gives_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    tallies = {(name, "edits"): requests(10.0) for name in ("plain", "codespec", "other")}
    found = rows(tallies, measured(Machine(law)), {"model": "m", "backend": "cpu"})
    assert not [key for row in found for key in row if key.endswith(("_low", "_high"))]
    assert {row["config"]: row.get("ratio_to_best_other") for row in found}["codespec"] == 1
    report.print_rows(found)
    said = capsys.readouterr().out
    assert "codespec: 1.00 times other, the fastest other\n" in said
    assert "1.00-1.00" not in said
