"""The origin of a completion: snippets in the prompt, source of each drafted token, accepted
tokens, changes by post-processing, times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from codespec.documents.from_disk import read_document
from codespec.documents.sources import BUFFERS, PREFIX, REPOSITORY, SUFFIX
from codespec.drafters.base import Drafter
from codespec.engine.local import LocalEngine
from codespec.errors import CodespecError
from codespec.requests import CompletionRequest
from codespec.types import Context, Draft, Source, Tokenizer, Tokens, Trace, Verdict

_MAX_LEFT_BYTES = 400


class ShownDraft(msgspec.Struct, frozen=True, kw_only=True):
    """Text of another file in the prompt."""

    source: str
    path: str
    why: str
    text: str


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt that the model read.

    n_before, n_after: tokens of the document before and after the cursor.
    first_line: line where the window before the cursor begins, from 1.
    healed: text before the cursor that was held back from the prompt, see `context.healing`.
    """

    n_tokens: int
    n_cached: int
    n_before: int
    n_after: int
    first_line: int
    fim: bool
    healed: str
    snippets: list[ShownDraft]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that one source drafted in one pass.

    n_accepted: accepted tokens of `n_drafted`, as far as the output goes.
    text: text of the accepted tokens.
    path, line: place of the drafted text in its source, as far as it can be found; line from 1,
        else 0.
    """

    source: str
    n_drafted: int
    n_accepted: int
    text: str
    path: str
    line: int


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of the target. said: text that it added to the output, accepted drafts included."""

    said: str
    spans: list[Span]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A completion and its origin.

    A field and that with the same name and `_key`: text for people, and key of an enum in
    `reasons`.

    reason: why the text is empty.
    generated: the output before it was trimmed.
    chances: see `Trace`.
    shown, sent: prompts that left this process, as text; and the requests, as they were sent.
    times_ms: milliseconds by stage; "other" is the rest, reading the prompt above all.
    """

    text: str
    finish: str
    reason: str
    reason_key: str
    model: str
    backend: str
    shape: str
    shape_why: str
    shape_why_key: str
    prompt: Prompt | None
    passes: list[Pass]
    generated: str
    trimmed: list[str]
    trimmed_keys: list[str]
    chances: list[float]
    times_ms: dict[str, float]
    shown: list[str] = []
    sent: list[str] = []


@dataclass(slots=True)
class _Seen:
    draft: Draft
    verdict: Verdict
    before: Tokens  # emitted before the pass
    said: Tokens  # emitted by the pass: less than its verdict where the output ends


class Recorder(Drafter):
    """A `Drafter` that drafts nothing and records the passes."""

    name = "recorder"

    def __init__(self) -> None:
        self.context: Context | None = None
        self.seen: list[_Seen] = []
        self._n_said = 0

    def begin(self, context: Context) -> None:
        self.context, self.seen, self._n_said = context, [], 0

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        before, said = np.split(emitted.copy(), [self._n_said])
        self.seen.append(_Seen(draft, verdict, before, said))
        self._n_said = len(emitted)


def explain(engine: LocalEngine, request: CompletionRequest) -> Explanation:
    """Complete `request` and explain the result. The text is that of `engine.complete`."""
    recorder = Recorder()
    shown, sent = list[str](), list[str]()
    if engine.has_passes:
        engine.watchers.append(recorder)
        try:
            completion = engine.complete(request)
        finally:
            engine.watchers.remove(recorder)
        context = recorder.context
    else:
        engine.watch(shown.append, sent.append)
        completion = engine.complete(request)
        context = engine.context(request) if shown else None
    trace = completion.trace
    passes: list[Pass] = []
    generated = b""
    if context is not None:
        finder = _Finder(engine, request, context)
        passes = [_pass(seen, finder, engine.tokenizer) for seen in recorder.seen]
        said = [token for seen in recorder.seen for token in seen.said.tolist()]
        generated = engine.tokenizer.decode(said)[len(context.healed) :]
    drafting_ms = trace.begin_ms + trace.draft_ms
    known = trace.context_ms + drafting_ms + trace.target_ms + trace.finish_ms
    return Explanation(
        text=completion.text,
        finish=completion.finish,
        reason=completion.reason,
        reason_key=completion.why.value if completion.why else "",
        model=trace.model,
        backend=trace.backend,
        shape=trace.shape,
        shape_why=trace.shape_why.text if trace.shape_why else "",
        shape_why_key=trace.shape_why.value if trace.shape_why else "",
        prompt=_prompt(engine.tokenizer, request, context, trace) if context else None,
        passes=passes,
        generated=generated.decode("utf-8", "replace"),
        trimmed=[trimming.text for trimming in trace.trimmed],
        trimmed_keys=[trimming.value for trimming in trace.trimmed],
        chances=list(trace.chances),
        times_ms={
            "context": trace.context_ms - trace.syntax_ms,
            "syntax": trace.syntax_ms,
            "drafting": drafting_ms,
            "target": trace.target_ms,
            "finishing": trace.finish_ms,
            "other": max(0.0, trace.ms - known),
            "all": trace.ms,
        },
        shown=shown,
        sent=sent,
    )


def _prompt(
    tokenizer: Tokenizer, request: CompletionRequest, context: Context, trace: Trace
) -> Prompt:
    # Lines count from the cursor up: a long text keeps the tokens of its end alone.
    shown = tokenizer.decode(context.left[len(context.left) - context.n_before :])
    n_above = request.prefix.count("\n") - (shown + context.healed).count(b"\n")
    return Prompt(
        n_tokens=len(context.prompt),
        n_cached=trace.n_prompt_cached,
        n_before=context.n_before,
        n_after=context.n_after,
        first_line=n_above + 1,
        fim=context.fim,
        healed=context.healed.decode("utf-8", "replace"),
        snippets=[
            ShownDraft(source=s.source, path=s.path, why=s.why, text=s.text)
            for s in context.snippets
        ],
    )


def _pass(seen: _Seen, finder: _Finder, tokenizer: Tokenizer) -> Pass:
    accepted = set(seen.verdict.path[: len(seen.said)])
    by_source: dict[int, list[int]] = {}
    for node, source in enumerate(seen.draft.sources.tolist()):
        by_source.setdefault(source, []).append(node)
    spans: list[Span] = []
    for source, nodes in by_source.items():
        followed = [n for n in nodes if n in accepted]
        # Where no node was accepted, the first one stands for the draft.
        tokens = seen.draft.tokens[followed or nodes[:1]]
        start = seen.verdict.path.index(followed[0]) if followed else 0
        said = [*seen.before.tolist(), *seen.said[:start].tolist()]
        path, line = finder.find(Source.of(source), said, tokens)
        spans.append(
            Span(
                source=Source.of(source).label,
                n_drafted=len(nodes),
                n_accepted=len(followed),
                text=tokenizer.decode(tokens).decode("utf-8", "replace") if followed else "",
                path=path,
                line=line,
            )
        )
    return Pass(said=tokenizer.decode(seen.said).decode("utf-8", "replace"), spans=spans)


class _Finder:
    """Finds the place of drafted text in its source: the one with the longest match of the text
    before it, by which lookups choose, too."""

    def __init__(self, engine: LocalEngine, request: CompletionRequest, context: Context) -> None:
        self._engine = engine
        self._request = request
        self._context = context
        # Output and drafts begin with the held-back bytes.
        self._known = request.prefix.encode().removesuffix(context.healed)
        self._left = self._known[-_MAX_LEFT_BYTES:]

    def find(self, source: Source, said: Sequence[int], tokens: Tokens) -> tuple[str, int]:
        """(path, line from 1) of the tokens; ("", 0) where the place is unknown or there is
        none."""
        decode = self._engine.tokenizer.decode
        before = (self._left + decode(said)).decode("utf-8", "ignore")
        text = decode(tokens).decode("utf-8", "ignore")
        best = (-1, "", 0)
        for path, document in self._documents(source, said, tokens):
            n, line = best_place(document, before, text)
            if n > best[0]:
                best = (n, path, line)
        return best[1], best[2]

    def _documents(
        self, source: Source, said: Sequence[int], tokens: Tokens
    ) -> list[tuple[str, str]]:
        request = self._request
        if source == PREFIX:
            return [(request.path, self._known.decode("utf-8", "ignore"))]
        if source == SUFFIX:
            # Lines count from the document's beginning.
            return [(request.path, "\n" * request.prefix.count("\n") + request.suffix)]
        if source == BUFFERS:
            return self._engine.open_texts(request)
        if source == REPOSITORY:
            text = np.concatenate([self._context.left, np.asarray(said, np.int32), tokens])
            path = self._engine.indexes.file_with(text, request)
            try:
                return [(path, read_document(Path(path)))] if path else []
            except CodespecError:
                return []  # the file is gone
        return []


def best_place(document: str, left: str, text: str) -> tuple[int, int]:
    """(characters of the end of `left` that stand before `text` in a document, line from 1 where
    `text` begins); (-1, 0) where the document does not hold it."""
    if not text or text not in document:
        return -1, 0
    low, high = 0, len(left)
    while low < high:
        middle = (low + high + 1) // 2
        if left[len(left) - middle :] + text in document:
            low = middle
        else:
            high = middle - 1
    at = document.rfind(left[len(left) - low :] + text) + low
    at += len(text) - len(text.lstrip("\n"))
    return low, document.count("\n", 0, at) + 1
