"""Prompts as clients write them: in the FIM template of some model, as a next-edit model is asked,
or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from codespec import limits
from codespec.config import CompletionSettings
from codespec.context.templates import PromptParts, has_markers, parted
from codespec.edits.formats.registry import form_of
from codespec.http.bodies import Body, snippets_of
from codespec.http.field_error import FieldError
from codespec.requests import CompletionRequest

_NO_TEMPLATE = (
    "a prompt uses FIM markers in no form that is known, and was read as plain text; send prompt "
    "and suffix, or raw: true if the model that completes knows the form"
)


class WrittenPrompt(NamedTuple):
    """A request that was read from a prompt. is_plain: True if the prompt has no form that is
    known."""

    request: CompletionRequest
    is_plain: bool = False
    warnings: Sequence[str] = ()


def request_for(
    body: Body, prompt: str, suffix: str, defaults: CompletionSettings, *, raw: bool = False
) -> WrittenPrompt:
    """The request for a prompt. raw: special tokens in it are read as such, and all of it as it is.
    Raises: FieldError."""
    form = None if suffix or raw else form_of(prompt)
    if raw or form is not None:
        if not body.verbatim:  # else all of the prompt would not be read
            raise FieldError("verbatim", "a raw prompt has verbatim answers; leave it out")
        made = replace(body.request(prompt, "", defaults), raw=True)
        if form is None:
            return WrittenPrompt(made)
        # Of a window that is rewritten most is copied.
        unchanged = form.unchanged(made.prefix)[: limits.OLD_CHARS]
        return WrittenPrompt(replace(made, form=form.name, rewrites=unchanged))
    parts = PromptParts(prompt, suffix) if suffix else parted(prompt)
    is_plain = parts == (prompt, "", ())
    warnings = (_NO_TEMPLATE,) if is_plain and has_markers(prompt) else ()
    made = body.request(parts.prefix, parts.suffix, defaults)
    return WrittenPrompt(replace(made, extra=snippets_of(parts.files)), is_plain, warnings)
