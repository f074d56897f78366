"""Figures of models: what clients of the daemon are told of the one that answers."""

from __future__ import annotations

from contextlib import closing

import pytest

from codespec.backends.model_figures import figures_of
from codespec.backends.registry import targets_of
from codespec.config import ModelSettings
from codespec.context.templates import parted
from codespec.models.figures import ModelFigures
from codespec.models.resolve import target_path
from tests.real_weights import smollm2


def figures(where: str) -> ModelFigures:
    with closing(targets_of(where).open(where)) as model:
        return figures_of(model, 512)


def test_those_of_the_bundled_model_tell_how_it_fills_in() -> None:
    path = target_path(ModelSettings())
    found = figures(str(path))
    assert found.n_ctx == 512 < found.n_ctx_trained
    assert found.file_bytes == path.stat().st_size
    assert found.modified_s == pytest.approx(path.stat().st_mtime)
    assert found.n_params > 1e6
    assert found.quantisation
    assert found.fills_in
    assert not found.chats
    prompt = found.fim_prompt.format(prefix="before", suffix="after")
    assert parted(prompt)[:2] == ("before", "after")


def test_those_of_a_model_for_chats_say_so() -> None:
    found = figures(str(smollm2()))
    assert found.chats
    assert (found.fills_in, found.fim_prompt) == (False, "")
