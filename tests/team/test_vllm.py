"""Drafts in vLLM itself: the same text as without them, whatever the drafter does."""

from __future__ import annotations

import pytest

from codespec.serving.vllm_drafter import VERSION

from .conftest import N_TOKENS
from .hostile_drafter import FAULTS


def test_the_installed_version_is_as_the_adapter_expects(team):
    code, output = team.contract()
    assert f"tested with {VERSION}: 0 broken" in output, output
    assert code == 0


@pytest.mark.parametrize("at_once", [1, 8])
def test_greedy_text_is_that_without_drafts(client, places, plain, at_once):
    run = client.run(places, N_TOKENS, at_once)
    assert run.tokens == plain
    assert run.accepted > 0
    assert run.steps < sum(map(len, plain))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_a_draft_and_no_text(client, places, plain, fault_file, fault):
    try:
        fault_file.write_text(fault)
        assert client.run(places, N_TOKENS, len(places)).tokens == plain
    finally:
        fault_file.write_text("")
    assert client.is_ready()
    assert client.run(places[:2], N_TOKENS).tokens == plain[:2]
