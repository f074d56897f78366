"""The drafter's counters on an engine's page of metrics: what they count, and that nothing which a
drafter or a client does can spoil the page."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from codespec.documents.sources import PREFIX, REPOSITORY
from codespec.serving import vllm_metrics
from codespec.serving.counter_samples import series_of
from codespec.serving.counters import MOST_WORKSPACES, RowCounters
from codespec.serving.vllm_metrics import DraftCounters, FreshCounters
from codespec.types import Source


def counted(**fields: float) -> RowCounters:
    counters = RowCounters(**fields)  # pyright: ignore[reportArgumentType]
    add(counters, "app", REPOSITORY, 8, 5)
    add(counters, "app", PREFIX, 3, 1)
    add(counters, "", PREFIX, 2, 2)
    return counters


def add(counters: RowCounters, workspace: str, source: Source, drafted: int, accepted: int) -> None:
    counts = [(0, 0)] * Source.count()
    counts[source] = (drafted, accepted)
    counters.add(counts, workspace)


class Page:
    """The page of metrics of an engine whose workers give these counters."""

    def __init__(self, *told: Any) -> None:
        self.told: Any = list(told)
        self.counters = DraftCounters()
        self.counters.ask = self._ask
        self.registry = CollectorRegistry()
        self.registry.register(self.counters)
        self.middleware = FreshCounters(self._app, self.counters)
        self.text = ""

    async def _ask(self) -> Any:
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.text = generate_latest(self.registry).decode()

    def samples(self, path: str = "/metrics") -> dict[str, float]:
        asyncio.run(self.middleware({"type": "http", "path": path}, None, None))
        families = list(text_string_to_metric_families(self.text))
        found = [sample for family in families for sample in family.samples]
        return {
            f"{sample.name}{sorted(sample.labels.items()) or ''}": sample.value for sample in found
        }


def test_the_page_has_what_was_counted():
    page = Page(counted(n_steps=7, n_rows=9, n_late=2, ms=1500.0).as_dict())
    found = page.samples()
    assert found["codespec_draft_steps_total"] == 7
    assert found["codespec_draft_rows_total"] == 9
    assert found["codespec_draft_wait_seconds_total"] == 1.5
    assert found["codespec_draft_lost_total[('why', 'late')]"] == 2
    by_source = {
        name: value for name, value in found.items() if name.startswith("codespec_accepted")
    }
    of = "codespec_accepted_tokens_total[('source', '{}'), ('workspace', '{}')]".format
    assert by_source == {of("repository", "app"): 5, of("prefix", "app"): 1, of("prefix", ""): 2}


def test_counters_are_asked_for_when_the_page_is():
    page = Page(counted(n_steps=1).as_dict())
    assert page.samples("/health") == {}
    assert page.samples()["codespec_draft_steps_total"] == 1
    page.told = [counted(n_steps=5).as_dict()]
    assert page.samples("/health")["codespec_draft_steps_total"] == 1
    assert page.samples()["codespec_draft_steps_total"] == 5


def test_workers_that_draft_the_same_count_once():
    stats = counted(n_steps=3).as_dict()
    assert Page(None, stats, stats).samples()["codespec_draft_steps_total"] == 3


@pytest.mark.parametrize("told", [RuntimeError("no such method"), [{}], [{"n_steps": "?"}], 3])
def test_a_worker_that_tells_nothing_sound_leaves_the_page_as_it_was(told: Any):
    page = Page(counted(n_steps=4).as_dict())
    assert page.samples()["codespec_draft_steps_total"] == 4
    page.told = told
    assert page.samples()["codespec_draft_steps_total"] == 4


def test_a_worker_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vllm_metrics, "WAIT_S", 0.01)
    page = Page(counted().as_dict())

    async def hangs() -> Any:
        await asyncio.Event().wait()

    page.counters.ask = hangs
    assert page.samples() == {}


def test_workspaces_without_end_do_not_fill_the_page():
    counters = RowCounters()
    for n in range(2 * MOST_WORKSPACES):
        add(counters, f"w{n}", PREFIX, 2, 1)
    drafted = {series.name: series for series in series_of(counters.as_dict())}[
        "codespec_drafted_tokens"
    ]
    assert len(drafted.values) == MOST_WORKSPACES + 1
    assert drafted.values["", "prefix"] == 2 * MOST_WORKSPACES
    assert sum(drafted.values.values()) == 4 * MOST_WORKSPACES


def test_names_are_those_of_the_field():
    for series in series_of(counted().as_dict()):
        assert re.fullmatch(r"codespec_[a-z_]+[a-z]", series.name)
        assert not series.name.endswith("_total")
        assert series.help


def test_the_page_for_administrators_lists_them():
    page = Path(__file__).parents[2] / "docs" / "team-operation.md"
    listed = re.findall(r"`(codespec_[a-z_]+)_total(?:\{([a-z,]+)\})?`", page.read_text("utf-8"))
    told = [(series.name, ",".join(series.labels)) for series in series_of(counted().as_dict())]
    assert sorted(listed) == sorted(told)
