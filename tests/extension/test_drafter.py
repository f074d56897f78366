"""A drafter is one file and one line of registration: n-grams of what a document and its answers
say, used beside lookups and alone, in an engine with the bundled model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from codespec.config import load_settings
from codespec.drafters import registry
from codespec.drafters.base import Drafter
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.planner_weights import read_weights
from codespec.drafters.registry import TargetFacts
from codespec.engine.local import LocalEngine
from codespec.errors import ConfigError
from codespec.requests import CompletionRequest
from codespec.types import NO_DRAFT, Context, Draft, PassState, Source, Tokens, Verdict

NGRAMS = Source.register("ngrams")


class Ngrams(Drafter):
    """Says what followed the last three tokens when they were last seen."""

    name = "ngrams"

    def __init__(self, site: TargetFacts) -> None:
        self._site = site
        self._next: dict[tuple[int, ...], int] = {}
        self._text: list[int] = []

    def begin(self, context: Context) -> None:
        self._next, self._text = {}, []
        self._read(context.left.tolist())

    def propose(self, state: PassState, n_max: int) -> Draft:
        text, drafted = self._text[-3:], list[int]()
        while len(drafted) < n_max and (token := self._next.get(tuple(text[-3:]))) is not None:
            drafted.append(token)
            text.append(token)
        probs = np.full(len(drafted), 0.7, np.float32)
        return Draft.chain(drafted, NGRAMS, probs) if drafted else NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self._read(list(verdict.emitted))

    def _read(self, tokens: list[int]) -> None:
        for token in tokens:
            self._next[tuple(self._text[-3:])] = token
            self._text.append(token)


REQUEST = CompletionRequest(
    "def first(items, default=None):\n    for item in items:\n        return item\n"
    "    return default\n\n\ndef second(items, default=None):\n    for item in items:\n",
    path="/w/a.py",
    workspace="/w",
    max_tokens=24,
    verbatim=True,
)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(registry, "_added", dict(vars(registry)["_added"]))
    registry.register("ngrams", Ngrams)
    settings = {
        "drafting": {"drafters": ["lookup", "ngrams"], "adaptive": False},
        "model": {"n_threads": 1},
    }
    engine = LocalEngine(load_settings(settings, env={}), policy=GuardPolicy.RAISE)
    yield engine
    engine.close()


def test_it_drafts_and_the_text_stays(engine: LocalEngine) -> None:
    texts: set[str] = set()
    for names in ((), ("ngrams",), ("lookup", "ngrams")):
        request = CompletionRequest(
            REQUEST.prefix, REQUEST.suffix, REQUEST.path, REQUEST.workspace,
            max_tokens=24, verbatim=True, drafters=names,
        )  # fmt: skip
        completion = engine.complete(request)
        texts.add(completion.text)
        stats = completion.trace.by_source.get("ngrams")
        if names == ("ngrams",):
            assert stats is not None
            assert 0 < stats.n_accepted <= stats.n_drafted
            assert completion.trace.n_target_passes < completion.trace.n_tokens
        elif not names:
            assert stats is None
    assert len(texts) == 1


def test_its_source_is_kept_by_name(engine: LocalEngine, tmp_path: Path) -> None:
    assert engine.complete(REQUEST).text
    engine.close()
    kept = [read_weights(file) for file in (tmp_path / "acceptance").iterdir()]
    assert kept
    assert all(learned is not None and "ngrams" in learned.weights for learned in kept)


def test_a_name_is_taken_once_and_an_unknown_one_is_told(engine: LocalEngine) -> None:
    for name in ("lookup", "ngrams"):
        with pytest.raises(ValueError, match=name):
            registry.register(name, Ngrams)
    with pytest.raises(ConfigError, match="ngram") as caught:
        engine.drafter("/w", ("ngram",))
    assert "lookup, model, aligned, ngrams" in caught.value.hint
