"""One request on its way from prompt to suggestion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from codespec.context.healing import n_repeating
from codespec.edit import Edit
from codespec.engine.postprocess import Late, Place, Shape, UnitStop, finish, never
from codespec.engine.until import STOPPED, Until, UntilRule
from codespec.requests import CompletionRequest
from codespec.types import Context, Finish, Tokenizer, Trace


@dataclass(frozen=True, slots=True)
class Suggested:
    """edit: None where nothing is suggested. trimmed: what was changed on the way, in words."""

    edit: Edit | None
    trimmed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """What the loop made of a request; `tokens` repeat the bytes of `context.healed` first.

    until:       where the asker wants it to end.
    is_verbatim: nothing else ends or trims the text.
    late:        whether there is no time left to see what fits.
    """

    request: CompletionRequest
    context: Context
    place: Place
    shape: Shape
    stop: UnitStop
    trace: Trace
    tokens: list[int] = field(default_factory=list[int])
    finish: Finish = "empty"
    until: Until = field(default_factory=Until)
    is_verbatim: bool = False
    late: Late = never

    def anew(self, tokenizer: Tokenizer) -> Generation:
        """The same place and prompt, nothing said yet."""
        n_healed = len(self.context.healed)
        stop = UnitStop(tokenizer, self.shape, self.place, n_healed)
        return replace(self, stop=stop, trace=Trace(), tokens=[], finish="empty")

    def finished(self, raw: bytes, ended: Finish) -> Suggested:
        """The suggestion for the bytes of all tokens so far. `ended`: why there are no more;
        "deadline" gives finished lines only."""
        text = raw[len(self.context.healed) :].decode("utf-8", "ignore")
        before = self.until.before_stop(text)
        notes = () if before == text else (STOPPED,)
        text = self.until.cut(before)
        if self.is_verbatim:
            return Suggested(self.request.insertion(text), notes)
        made = finish(text, self.stop.end(text), ended, self.shape, self.place, self.late)
        return Suggested(self.request.insertion(made.text), (*notes, *made.trimmed))

    def ends(self, tokenizer: Tokenizer) -> Callable[[list[int]], bool]:
        """Whether the output is complete, asked after each token with all tokens so far."""
        rules: list[Callable[[list[int]], bool]] = [] if self.is_verbatim else [self.stop]
        if self.until.asks:
            n_healed = len(self.context.healed)
            rules.append(UntilRule(tokenizer, self.until, n_healed, trace=self.trace))
        if len(rules) == 1:
            return rules[0]
        return lambda emitted: any(rule(emitted) for rule in rules)

    @property
    def is_in_line(self) -> bool:
        """Whether it need not be asked whether the output is complete before a line ends."""
        return not self.until.asks and (self.is_verbatim or self.stop.is_in_line)

    def n_repeating(self, tokenizer: Tokenizer) -> Callable[[Sequence[int]], int]:
        """How many tokens of an output only repeat what stands before the cursor."""
        return lambda emitted: n_repeating(emitted, self.context.healed, tokenizer)

    def why_empty(self, finished: Suggested) -> str:
        """A reason in words for a text that came to nothing."""
        if finished.trimmed and self.finish in ("stop", "length"):
            return f"nothing was left of what the model wrote: {finished.trimmed[-1]}"
        return _REASONS.get(self.finish, "the model has nothing to add here")


_REASONS = {
    "cancelled": "a newer request took its place",
    "deadline": "the deadline passed before the first line was done",
    "empty": "there is no text before the cursor to complete",
}
