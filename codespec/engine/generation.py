"""One request on its way from prompt to suggestion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from codespec.context.healing import n_repeating
from codespec.drafters.aligned import n_copied
from codespec.edit import Edit
from codespec.engine.output import Stop
from codespec.languages.registry import TEXT
from codespec.reasons import NoSuggestion, Trimming
from codespec.requests import CompletionRequest, OnProgress, Progress
from codespec.suggest import (
    Judge,
    Knows,
    Late,
    Place,
    Shape,
    UnitStop,
    finish,
    never,
    nobody,
    place_in,
    shape_at,
)
from codespec.suggest.until import Until, UntilRule
from codespec.syntax.trees import TreeCache
from codespec.types import Context, Finish, Tokenizer, Trace

GRACE_S = 0.05
"""Seconds after the deadline in which what was generated may still be made to fit its place."""
INTERVAL_S = 0.02
"""Shortest time between two reports of progress, seconds."""


class Due:
    """Deadline and cancellation of one request.

    clock:     seconds.
    started:   reading of the clock when the request came.
    at:        reading of the clock at the deadline; infinity for none.
    cancelled: True once nobody waits for the answer.
    """

    def __init__(
        self, request: CompletionRequest, clock: Callable[[], float], cancelled: Callable[[], bool]
    ) -> None:
        self.clock, self.cancelled = clock, cancelled
        self.started = clock()
        self.at = self.started + request.deadline_ms / 1e3 if request.deadline_ms else float("inf")

    @property
    def ms(self) -> float:
        """Milliseconds since the request came."""
        return (self.clock() - self.started) * 1e3

    def is_over(self) -> bool:
        """True after the deadline, and once cancelled."""
        return self.cancelled() or self.clock() >= self.at

    def grace(self) -> Late:
        """A `Late` that turns true GRACE_S after the deadline, and once cancelled. After the
        deadline the grace begins with the first question, as a pass may end after the deadline."""
        until = 0.0

        def late() -> bool:
            nonlocal until
            now = self.clock()
            until = until or max(self.at, now) + GRACE_S
            return self.cancelled() or now >= until

        return late


@dataclass(frozen=True, slots=True)
class Suggested:
    """edit: None where nothing is suggested. trimmed: changes of the generated text, in order.
    chances, n_likely, has_log_probs: see `Trace`."""

    edit: Edit | None
    trimmed: tuple[Trimming, ...] = ()
    chances: tuple[float, ...] = ()
    n_likely: int = 0
    has_log_probs: bool = False

    @property
    def chance(self) -> float:
        """Probability that what is suggested is kept; 0 where none was computed."""
        return self.chances[self.n_likely - 1] if self.n_likely else 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """Text of an output, within the limits that its request sets.

    ended: cause of the output's end.
    end:   length of the part that belongs to the suggestion; None where its unit does not end.
    trimmed: changes by these limits.
    """

    text: str
    ended: Finish
    end: int | None
    trimmed: tuple[Trimming, ...] = ()

    @property
    def n_lines(self) -> int:
        """Lines that may be suggested: of a text that was cut short, the last one may go on."""
        is_whole = self.end is not None or self.ended in ("stop", "length")
        return self.text.count("\n", 0, self.end) + is_whole


@dataclass(frozen=True, slots=True)
class Generation:
    """A request with its prompt, and later with its output.

    until:       limits of the output that the request asks for.
    is_verbatim: True if nothing but these limits ends or trims the text.
    late:        True once there is no time left to check whether a text fits.
    knows:       True for people whom the user's other texts name.
    tokens:      the output; it repeats the bytes of `context.healed` first.
    log_probs:   log-probability of each of them while they are decoded, and of the token that ended
        the output; None where the request needs none.
    """

    request: CompletionRequest
    context: Context
    place: Place
    shape: Shape
    stop: UnitStop
    judge: Judge
    trace: Trace
    tokens: list[int] = field(default_factory=list[int])
    finish: Finish = "empty"
    until: Until = field(default_factory=Until)
    is_verbatim: bool = False
    late: Late = never
    knows: Knows = nobody
    log_probs: list[float] | None = None

    def anew(self, tokenizer: Tokenizer) -> Generation:
        """A copy without output: the same place and prompt."""
        n_healed = len(self.context.healed)
        stop = UnitStop(tokenizer, self.shape, self.place, n_healed)
        return replace(self, stop=stop, trace=Trace(), tokens=[], finish="empty", log_probs=None)

    def with_output(self, tokens: list[int], finish: Finish) -> Generation:
        """A copy with its output, and the cause that ended it."""
        return replace(self, tokens=tokens, finish=finish)

    def until_late(self, due: Due) -> Generation:
        """A copy with a grace of its own for checks of what fits."""
        return replace(self, late=due.grace())

    def finished(self, raw: bytes, ended: Finish) -> Suggested:
        """The suggestion for the bytes of all tokens so far. ended: cause of the end; "deadline"
        gives finished lines only."""
        return self.suggested(self.said(raw, ended))

    def said(self, raw: bytes, ended: Finish) -> Said:
        """The text of these bytes. ended: as in `finished`."""
        text = self._text_of(raw)
        before = self.until.before_stop(text)
        notes = () if before == text else (Trimming.STOP_TEXT,)
        text = self.until.cut(before)
        return Said(text, ended, None if self.is_verbatim else self.stop.end(text), notes)

    def _text_of(self, raw: bytes) -> str:
        """The text of these bytes, without those that repeat text before the cursor."""
        return raw[len(self.context.healed) :].decode("utf-8", "ignore")

    def suggested(self, said: Said) -> Suggested:
        """The suggestion for a text of the output."""
        if self.is_verbatim:
            return Suggested(self.request.insertion(said.text), said.trimmed)
        candidate = self.stop.candidate(said.text)
        rules = self.shape, self.judge, self.late, self.knows
        made = finish(candidate, said.end, said.ended, *rules)
        return Suggested(self.request.insertion(made.text), (*said.trimmed, *made.trimmed))

    def ends(self, tokenizer: Tokenizer) -> Stop:
        """The rule that ends the output: of the shape, and of the limits that the request sets."""
        rules: list[Stop] = [] if self.is_verbatim else [self.stop]
        if self.until.asks:
            n_healed = len(self.context.healed)
            rules.append(UntilRule(tokenizer, self.until, n_healed, trace=self.trace))
        if len(rules) == 1:
            return rules[0]
        return lambda emitted: any(rule(emitted) for rule in rules)

    @property
    def is_in_line(self) -> bool:
        """True while `ends` need not be asked before a line ends."""
        return not self.until.asks and (self.is_verbatim or self.stop.is_in_line)

    def n_repeating(self, tokenizer: Tokenizer) -> Callable[[Sequence[int]], int]:
        """A function that counts the tokens of an output that only repeat text before the
        cursor."""
        return lambda emitted: n_repeating(emitted, self.context.healed, tokenizer)

    def tell_trace(self, tokenizer: Tokenizer) -> None:
        """Tell the trace how many tokens of the output repeat text before the cursor, how many of
        the old text's tokens it has, and the stop text that ended it."""
        first = self.until.first_stop(self._text_of(tokenizer.decode(self.tokens)))
        self.trace.n_stop = -1 if first is None else first[1]
        repeating, old = self.n_repeating(tokenizer), self.context.old
        self.trace.n_repeated = n_repeated = repeating(self.tokens)
        if len(old):
            n_had = n_copied(old, np.asarray(self.tokens, np.int32)) - n_repeated
            self.trace.n_old = len(old) - repeating(old.tolist())
            self.trace.n_old_copied = max(0, min(n_had, self.trace.n_old))

    def why_empty(self, finished: Suggested) -> tuple[NoSuggestion, str]:
        """(the reason why nothing is suggested; a longer text of it, "" for none)."""
        if finished.chances and not finished.n_likely:
            return NoSuggestion.HELD_BACK, ""
        if finished.trimmed and self.finish in ("stop", "length"):
            why = NoSuggestion.NOTHING_LEFT
            return why, f"{why.text}: {finished.trimmed[-1].text}"
        return _REASONS.get(self.finish, NoSuggestion.NOTHING_TO_ADD), ""


def generation_at(
    request: CompletionRequest,
    context: Context,
    name: str,
    trees: TreeCache,
    tokenizer: Tokenizer,
    trace: Trace,
    knows: Knows = nobody,
) -> Generation:
    """The request at its place, with how much to suggest there, and no output so far.

    name: path of the document, as far as it tells the language. trace: told the shape. knows: see
    `Generation`.
    """
    # A grammar determines the text.
    is_verbatim = request.verbatim or request.sampling.has_form
    # The search for a shape takes seconds in a line of megabytes.
    place = Place("", "", TEXT)
    if not is_verbatim and not request.parses:
        place = Place(request.prefix, request.suffix, TEXT)
    elif not is_verbatim:
        place = place_in(trees, request.prefix, request.suffix, name, request.language_id)
    shape = shape_at(place, multiline=request.multiline)
    trace.shape, trace.shape_why = shape.kind, shape.why
    stop = UnitStop(tokenizer, shape, place, len(context.healed))
    until = Until(request.stop, request.min_indent, request.max_line_ms)
    return Generation(
        request,
        context,
        place,
        shape,
        stop,
        Judge(place),
        trace,
        until=until,
        is_verbatim=is_verbatim,
        knows=knows,
        log_probs=None if request.eagerness is None or is_verbatim else [],
    )


_REASONS: dict[Finish, NoSuggestion] = {
    "cancelled": NoSuggestion.CANCELLED,
    "deadline": NoSuggestion.NO_LINE_IN_TIME,
    "empty": NoSuggestion.NO_PREFIX,
}


def finished_lines(raw: bytes) -> bytes:
    """`raw` without its last line, which may go on."""
    return raw[: max(0, raw.rfind(b"\n"))]


class Teller:
    """Reports the progress of an output from time to time; called after every token with all
    tokens so far.

    decode:   the bytes of tokens.
    n_healed: bytes the output repeats from before the cursor.
    finish:   the suggestion for an output, finished lines only.
    late:     True where `finish` had no time; then nothing more is reported.
    """

    def __init__(
        self,
        tell: OnProgress,
        decode: Callable[[Sequence[int]], bytes],
        n_healed: int,
        finish: Callable[[Sequence[int]], Suggested],
        late: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._tell = tell
        self._decode = decode
        self._n_healed = n_healed
        self._finish = finish
        self._late = late
        self._clock = clock
        self._told_s = clock()
        self._wait_s = INTERVAL_S
        self._finished = b""
        self._lines = Suggested(None)

    def __call__(self, emitted: Sequence[int]) -> None:
        now = self._clock()
        if now - self._told_s < self._wait_s:
            return
        raw = self._decode(emitted)
        finished = finished_lines(raw)
        if finished != self._finished:
            self._finished, lines = finished, self._finish(emitted)
            if self._late():
                return
            self._lines = lines
        text = raw[self._n_healed :].decode("utf-8", "ignore")
        self._tell(Progress(text, self._lines.edit, self._lines.chance))
        self._told_s = self._clock()
        self._wait_s = max(INTERVAL_S, self._told_s - now)  # the model gets half of the time
