"""Prompts as clients write them: in the FIM template of some model, as a next-edit model is asked,
or plain text."""

from __future__ import annotations

from dataclasses import replace

from codespec import limits
from codespec.config import CompletionSettings
from codespec.context.templates import PromptParts, has_markers, parted
from codespec.edits.formats.registry import form_of
from codespec.http.bodies import Body, FieldError, snippets_of
from codespec.requests import CompletionRequest

_NO_TEMPLATE = (
    "a prompt uses FIM markers in no form that is known, and was read as plain text; send prompt "
    "and suffix, or raw: true if the model that completes knows the form"
)


def request_for(
    body: Body, prompt: str, suffix: str, defaults: CompletionSettings, *, raw: bool = False
) -> tuple[CompletionRequest, list[str]]:
    """(the request, warnings). raw: special tokens in the prompt are read as such, and all of it as
    it is. Raises: FieldError."""
    form = None if suffix or raw else form_of(prompt)
    if raw or form is not None:
        if not body.verbatim:  # else all of the prompt would not be read
            raise FieldError("verbatim", "a raw prompt has verbatim answers; leave it out")
        made = replace(body.request(prompt, "", defaults), raw=True)
        if form is None:
            return made, []
        # Of a window that is rewritten most is copied.
        unchanged = form.unchanged(made.prefix)[: limits.OLD_CHARS]
        return replace(made, form=form.name, rewrites=unchanged), []
    parts = PromptParts(prompt, suffix) if suffix else parted(prompt)
    is_unknown = parts == (prompt, "", ()) and has_markers(prompt)
    made = body.request(parts.prefix, parts.suffix, defaults)
    return replace(made, extra=snippets_of(parts.files)), [_NO_TEMPLATE] if is_unknown else []
