"""Adapter for vLLM, called as its model runner calls it: arguments of these shapes, no engine.
`tests/team` runs it in vLLM itself."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from codespec.backends.remote.json_vocabulary import bytes_of_characters
from codespec.errors import CodespecError, ConfigError, ModelError
from codespec.serving import vllm_drafter
from codespec.serving.row_guard import RowGuard
from codespec.serving.tokenizer_file import TokenizerFile
from codespec.serving.vllm_drafter import VARIABLE, ServingSettings, VllmDrafter, settings_from

N_MAX, N_CONTEXT = 4, 64
MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vocabulary of the bytes and the markers."""
    characters = {byte: c for c, byte in bytes_of_characters().items()}
    vocab = {characters[byte]: byte for byte in range(256)}
    added = [{"id": 256 + i, "content": text} for i, text in enumerate(MARKERS)]
    data = {"model": {"type": "BPE", "vocab": vocab, "merges": []}, "added_tokens": added}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    return tmp_path


class Runner:
    """The parts of vLLM's model runner that the drafter knows; it makes the drafter."""

    def __init__(self, folder: Path) -> None:
        self.requests: dict[str, Any] = {}
        self.input_batch = SimpleNamespace(
            req_ids=list[str](),
            num_tokens_no_spec=np.zeros(8, np.int32),
            token_ids_cpu=np.zeros((8, N_CONTEXT), np.int32),
        )
        config = SimpleNamespace(
            speculative_config=SimpleNamespace(num_speculative_tokens=N_MAX),
            model_config=SimpleNamespace(
                model=str(folder),
                max_model_len=N_CONTEXT,
                get_vocab_size=lambda: 260,
                hf_config=SimpleNamespace(hidden_size=64, num_hidden_layers=2),
            ),
        )
        self.drafter = make_drafter(config)

    def propose_draft_token_ids(self) -> None:
        """By this the drafter knows its maker."""

    def add(self, name: str, prompt: bytes, **extra: Any) -> None:
        self.requests[name] = SimpleNamespace(
            num_prompt_tokens=len(prompt), sampling_params=SimpleNamespace(extra_args=extra or None)
        )
        row = len(self.input_batch.req_ids)
        self.input_batch.req_ids.append(name)
        self.emit(row, prompt)

    def emit(self, row: int, text: bytes) -> None:
        batch = self.input_batch
        n = batch.num_tokens_no_spec[row]
        batch.token_ids_cpu[row, n : n + len(text)] = list(text)
        batch.num_tokens_no_spec[row] += len(text)

    def step(self, *emitted: bytes) -> list[bytes]:
        """One step in which the rows emit these tokens; none: still reading its prompt."""
        for row, text in enumerate(emitted):
            self.emit(row, text)
        batch = self.input_batch
        found = self.drafter.propose(
            [list(text) for text in emitted],
            batch.num_tokens_no_spec,
            batch.token_ids_cpu,
            slot_mappings=None,
        )
        assert [type(chain) for chain in found] == [list] * len(emitted)
        return [bytes(chain) for chain in found]


def make_drafter(config: Any) -> VllmDrafter:
    """Makes the drafter by a function between the runner and the class, as vLLM does."""
    return VllmDrafter(config)


@pytest.fixture
def runner(folder, monkeypatch) -> Runner:
    monkeypatch.setenv(VARIABLE, '{"budget_ms": 10000, "threads": 1}')
    return Runner(folder)


def test_rows_are_drafted_for(runner):
    runner.add("a", b"alpha(beta)\nalpha(")
    runner.add("b", b"one two one ")
    assert runner.step(b"b", b"t") == [b"eta)", b"wo o"]
    assert runner.step(b"eta", b"") == [b")\nal", b""]
    stats = runner.drafter.stats()
    assert (stats["n_begun"], stats["n_steps"], stats["n_rows"]) == (2, 2, 3)
    assert (stats["n_failed"], stats["n_refused"], stats["n_late"]) == (0, 0, 0)


def test_a_row_that_reads_its_prompt_is_left_alone(runner):
    runner.add("a", b"xyxyxyxyx")
    assert runner.step(b"") == [b""]
    assert runner.step(b"y") == [b"xyxy"]


def test_costs_are_learned_of_steps_that_read_no_prompt(runner, monkeypatch):
    seen: list[int] = []
    monkeypatch.setattr(runner.drafter._cost, "observe", lambda n, ms: seen.append(n))
    runner.add("a", b"xyxyxyxyx")
    runner.add("b", b"a long prompt, read in several steps")
    for reading in (b"", b"", b"."):
        runner.step(b"y", reading)
    assert seen == []
    runner.step(b"y", b".")
    assert len(seen) == 1


def test_counters_that_cannot_be_told_cost_no_draft(runner, monkeypatch):
    def fails() -> dict[str, Any]:
        raise RuntimeError

    monkeypatch.setattr(vllm_drafter, "_LOG_EVERY_S", 0.0)
    monkeypatch.setattr(runner.drafter, "stats", fails)
    runner.add("a", b"xyxyxyxyx")
    assert runner.step(b"y") == [b"xyxy"]


def test_drafts_end_where_the_context_does(runner):
    text = b"xy" * (N_CONTEXT // 2)
    runner.add("a", text[: N_CONTEXT - 4])
    assert runner.step(b"x") == [b"yx"]
    assert runner.step(b"yx") == [b""]


def test_rows_that_move_keep_their_requests(runner):
    runner.add("a", b"alpha(beta)\nalpha(")
    runner.add("b", b"one two one ")
    runner.step(b"b", b"t")
    batch = runner.input_batch
    batch.req_ids[:] = ["b", "a"]
    batch.token_ids_cpu[[0, 1]] = batch.token_ids_cpu[[1, 0]]
    batch.num_tokens_no_spec[[0, 1]] = batch.num_tokens_no_spec[[1, 0]]
    assert runner.step(b"wo", b"eta") == [b" one", b")\nal"]
    assert runner.drafter.stats()["n_begun"] == 2


def test_a_request_may_be_without_drafts(runner):
    runner.add("a", b"xyxyxyxyx", codespec_draft=0)
    assert runner.step(b"y") == [b""]


def test_paths_that_cannot_be_are_not_looked_for(runner):
    for path in ("a\0b", "x" * 5000, ["list"], 7):
        place = runner.drafter._place(SimpleNamespace(extra_args={"codespec_path": path}))
        assert place.path in ("", "['list']", "7")
    assert runner.drafter._place(None) == runner.drafter._place(SimpleNamespace(extra_args=None))


def test_the_document_of_a_prompt_is_found_by_its_markers(runner):
    prompt = [256, *b"(x, ", 257, *b"\nname = value\n", 258]
    runner.add("a", b"")
    batch = runner.input_batch
    batch.token_ids_cpu[0, : len(prompt)] = prompt
    batch.num_tokens_no_spec[0] = len(prompt)
    runner.requests["a"].num_prompt_tokens = len(prompt)
    assert runner.step(b"na") == [b"me ="]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda runner: runner.requests.clear(),
        lambda runner: runner.input_batch.req_ids.clear(),
        lambda runner: setattr(runner.requests["a"], "num_prompt_tokens", None),
        lambda runner: delattr(runner.requests["a"], "sampling_params"),
        lambda runner: setattr(runner, "input_batch", None),
    ],
)
def test_a_runner_that_is_not_as_expected_costs_drafts_alone(runner, spoil):
    runner.add("a", b"xyxyxyxyx")
    batch = runner.input_batch
    spoil(runner)
    batch.token_ids_cpu[0, 9] = ord("y")
    batch.num_tokens_no_spec[0] = 10
    found = runner.drafter.propose([[ord("y")]], batch.num_tokens_no_spec, batch.token_ids_cpu)
    assert found == [[]]
    assert runner.drafter.stats()["n_failed"] == 1


def test_nothing_is_drafted_where_no_runner_is_found(folder, monkeypatch, caplog):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(vllm_drafter, "_MOST_FRAMES", 0)
    runner = Runner(folder)
    assert "runner was not found" in caplog.text
    runner.add("a", b"xyxyxyxyx")
    assert runner.step(b"y") == [b""]


def test_a_workspace_without_an_index_is_said(folder, monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, json.dumps({"workspaces": {"w": str(tmp_path / "w")}}))
    Runner(folder)
    assert "workspace w: no index" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"budget": 1}',
        '{"budget_ms": 0}',
        '{"threads": 0}',
        '{"workspaces": ["x"]}',
        '{"curve": {}}',
        '{"curve": {"1": 0}}',
    ],
)
def test_settings_that_are_wrong_stop_the_start(text):
    with pytest.raises(ConfigError, match=VARIABLE):
        settings_from({VARIABLE: text})


def test_settings_have_defaults():
    assert settings_from({}) == ServingSettings()


@pytest.mark.parametrize(
    "content", ["", "{}", '{"added_tokens": [], "model": {"type": "Unigram", "vocab": {"a": 1}}}']
)
def test_another_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="tokenizer"):
        TokenizerFile(tmp_path, 10)


def test_a_vocabulary_larger_than_the_model_is_refused(folder):
    with pytest.raises(CodespecError, match="at most 100"):
        TokenizerFile(folder, 100)


def test_an_index_made_for_a_gguf_file_fits_a_vocabulary_that_was_rounded_up(folder):
    """llama.cpp's converter names the ids without a text."""
    known = TokenizerFile(folder, 261).hash
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    data["model"]["vocab"] |= {"[PAD259]": 259, "[PAD260]": 260}
    path.write_text(json.dumps(data))
    assert TokenizerFile(folder, 261).hash == known


def test_every_call_goes_through_the_guard(runner):
    """Also where the drafter behind it answers nonsense."""
    guard = runner.drafter._guard
    assert type(guard) is RowGuard
    nonsense: Any = SimpleNamespace(draft=lambda steps, ended, ms: [[10**7] for _ in steps])
    guard._drafter = nonsense
    runner.add("a", b"xyxyxyxyx")
    assert runner.step(b"y") == [b""]
