"""llama-server's infill, for its plug-ins: the dialect of POST /infill."""

from __future__ import annotations

from dataclasses import replace

from codespec.config import CompletionSettings
from codespec.http.bodies import read, snippets_of
from codespec.http.dialects.llama_answers import LlamaAnswers
from codespec.http.llama_bodies import InfillBody
from codespec.requests import CompletionRequest


class Infill(LlamaAnswers[InfillBody]):
    """POST /infill. Always one text, whatever `n_cmpl` says."""

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, InfillBody), model)

    def asked(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        body = self._body
        made = body.request(body.input_prefix + body.prompt, body.input_suffix, defaults)
        files = ((extra.filename or "", extra.text) for extra in body.input_extra)
        return [replace(made, extra=snippets_of(files))]
