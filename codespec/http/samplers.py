"""The samplers that act on a text, by llama-server's names. Source: llama.cpp,
tools/server/README.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codespec.types import SamplingParams

_LETTERS = {"e": "penalties", "k": "top_k", "p": "top_p", "m": "min_p"}
"""Names in a list that is one text, a letter each; further letters are samplers that are not
here."""


def acting(sampling: SamplingParams) -> list[str]:
    """The samplers that act, in the order of `verify.sampling`."""
    acts = {
        "penalties": sampling.has_penalty,
        "temperature": True,
        "top_k": sampling.top_k > 0,
        "top_p": sampling.top_p < 1,
        "min_p": sampling.min_p > 0,
    }
    return [name for name, does in acts.items() if does]


def chosen(sampling: SamplingParams, samplers: Sequence[str] | str) -> SamplingParams:
    """The sampling without those samplers that a list leaves out; an empty list leaves out none."""
    if not samplers:
        return sampling
    if isinstance(samplers, str):
        samplers = [_LETTERS.get(letter, "") for letter in samplers]
    off: dict[str, dict[str, Any]] = {
        "top_k": {"top_k": 0},
        "top_p": {"top_p": 1.0},
        "min_p": {"min_p": 0.0},
        "penalties": {
            "repetition_penalty": 1.0,
            "frequency_penalty": 0.0,
            "presence_penalty": 0.0,
        },
    }
    for name, values in off.items():
        if name not in samplers:
            sampling = replace(sampling, **values)
    return sampling
