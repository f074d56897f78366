"""Registry of next-edit formats, and of forms of prompts that clients write."""

from __future__ import annotations

from collections.abc import Collection

from codespec.edits.formats import prompts_only
from codespec.edits.formats.base import NextEditFormat, PromptForm
from codespec.edits.formats.sweep import Sweep
from codespec.edits.formats.zeta2 import Zeta2
from codespec.edits.formats.zeta21 import Zeta21

FORMATS: tuple[NextEditFormat, ...] = (Sweep(), Zeta2(), Zeta21())
"""Formats of the models that can propose next edits; one line each."""


def forms() -> tuple[PromptForm, ...]:
    """All forms of prompts that are known."""
    return (*FORMATS, *prompts_only.FORMS)


def form_of(prompt: str) -> PromptForm | None:
    """The form of a whole prompt; None for any other text."""
    return next((form for form in forms() if form.is_prompt(prompt)), None)


def form_named(name: str) -> PromptForm | None:
    """The form of this name."""
    return next((form for form in forms() if form.name == name), None)


def form_spoken(names: str, vocabulary: Collection[str]) -> PromptForm | None:
    """The form in which a model is asked for next edits; None for a model that was not made for
    them. See `PromptForm.speaks`."""
    return next((form for form in forms() if form.speaks(names, vocabulary)), None)
