"""The drafter's counters on a real vLLM's own page of metrics."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from codespec_bench.engine_client import EngineClient
from codespec_bench.served_places import ServedPlace

from .conftest import N_TOKENS, WORKSPACE


def samples(port: int) -> dict[tuple[str, str, str], float]:
    """Samples of ours by (name, workspace, source)."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        text = page.read().decode()
    return {
        (sample.name, sample.labels.get("workspace", ""), sample.labels.get("source", "")): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("codespec_")
    }


def test_the_page_counts_drafts_by_workspace_and_source(
    port: int, client: EngineClient, places: list[ServedPlace]
) -> None:
    before = samples(port)
    run = client.run(places, N_TOKENS)
    client.run(places[:1], 1)  # what ended is counted with a later step
    after = samples(port)

    def more(name: str) -> float:
        key = f"codespec_draft_{name}_total", "", ""
        return after[key] - before.get(key, 0)

    assert more("requests") == len(places) + 1
    assert more("tokens") >= run.drafted > 0
    assert more("steps") >= run.steps - len(places)
    assert more("wait_seconds") > 0
    from_index = "codespec_drafted_tokens_total", WORKSPACE, "repository"
    assert after[from_index] > before.get(from_index, 0)
    accepted = {
        key: after[("codespec_accepted_tokens_total", *key[1:])] <= value
        for key, value in after.items()
        if key[0] == "codespec_drafted_tokens_total"
    }
    assert accepted
    assert all(accepted.values())
