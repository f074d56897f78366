"""The contract of next-edit formats.

A next-edit model reads a document, what was changed lately, and a window of lines around the
cursor, and writes the window anew. A format says how: its prompt, and how its answer is read. The
strings that a model was trained on are its interface; each format names their source.

Special tokens stand in a prompt as `Special`, and are never looked for in the text of documents:
`special_tokens.encoded` takes their ids, and reads all other text as text. Markers that a
vocabulary lacks are spelled out, as their makers do, and so are those in answers: a document that
holds such a spelling gets no prompt, see `prompt_of`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from codespec.context.special_tokens import Part, Special
from codespec.edits.base import LineChange, LineEdit

KIND = "model"
"""Kind of the edits that a model proposes."""
CHARS_A_TOKEN = 3
"""Characters of source code a token, at least, for budgets of prompts."""
_MOST_TOKENS, _FURTHER_TOKENS = 1024, 256
"""Tokens of an answer: at most, and beyond the window's."""
MOST_LINE_CHARS = 600
"""Longest line of a window, characters: nobody proposes edits of generated text."""


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document just after a change.

    path: as a prompt names it, from the workspace's folder.
    text: all of it, \\n line ends. cursor: a character of it.
    changes: lately made, oldest first, in this document and others of the workspace; paths as a
        prompt names them.
    others: (path, text) of other files to show, best first.
    n_tokens: most tokens of the prompt, about.
    """

    path: str
    text: str
    cursor: int
    changes: tuple[LineChange, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    n_tokens: int = 4096

    @property
    def lines(self) -> list[str]:
        """Lines without their ends; an empty one stands behind a final line end."""
        return self.text.split("\n")

    @property
    def cursor_line(self) -> int:
        return self.text.count("\n", 0, self.cursor)

    @property
    def own_changes(self) -> list[LineChange]:
        """Changes of this document, oldest first."""
        return [change for change in self.changes if change.path == self.path]

    def text_of(self, path: str) -> str | None:
        """The text of a file that is shown; None for another one."""
        if path == self.path:
            return self.text
        return next((text for other, text in self.others if other == path), None)


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """A prompt, and what is needed to read its answer.

    parts: text and special tokens, in order.
    line: first line of the window, from 0. old: its lines.
    cursor_line: the cursor's line in the window, from 0.
    prefill: text of the answer that the prompt ends with.
    unchanged: the rest of the answer if the model changes nothing, to draft from.
    ends: texts that end the answer, beside the model's own tokens.
    """

    parts: tuple[Part, ...]
    line: int
    old: tuple[str, ...]
    cursor_line: int
    unchanged: tuple[Part, ...]
    prefill: str = ""
    ends: tuple[str, ...] = ()

    @property
    def max_tokens(self) -> int:
        """Most tokens of the answer, which would be dropped if it were longer than the window and
        a few lines."""
        return min(_MOST_TOKENS, sum(len(line) + 1 for line in self.old) // 2 + _FURTHER_TOKENS)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer. text: all of it, special tokens spelled out, without the token that ended
    it. is_cut: True if a limit ended it."""

    text: str
    is_cut: bool = False


class PromptForm:
    """A form of prompts that clients write for one family of next-edit models.

    name: key of the form. title: name of the models, for people.
    """

    name: str
    title: str

    def speaks(self, names: str, vocabulary: Collection[str]) -> bool:
        """True for a model of this family. names: the names of the model and its file.
        vocabulary: spellings of its special tokens."""
        raise NotImplementedError

    def is_prompt(self, text: str) -> bool:
        """True for a whole prompt of this form."""
        raise NotImplementedError

    def unchanged(self, prompt: str) -> str:
        """The answer to a prompt of this form if the model changes nothing, to draft from; "" where
        that is not told."""
        return ""


class NextEditFormat(PromptForm):
    """A form of prompts that we write, too.

    markers: matches the markers that are read in answers or that vocabularies lack.
    """

    markers: re.Pattern[str]

    def prompt(self, document: EditedDocument) -> EditPrompt | None:
        """The prompt for a document; None where there is no window. See `prompt_of`."""
        raise NotImplementedError

    def rewritten(self, prompt: EditPrompt, answer: ModelAnswer) -> tuple[str, ...] | None:
        """The lines that take the window's place; None for an answer that breaks the format's
        rules."""
        raise NotImplementedError


def edits_in(
    form: NextEditFormat,
    prompt: EditPrompt,
    answer: ModelAnswer,
    path: str,
    earlier: Collection[tuple[str, ...]] = (),
) -> list[LineEdit]:
    """The edits of an answer, those at and after the cursor first, each as small as whole lines
    allow; none of an answer that a limit cut, that changes nothing, that breaks the format's
    rules, or that puts the window back to lines that it had `earlier`.

    path: of the document, for the edits. Their chance is 1: the model's certainty is judged by who
    asked it.
    """
    new = None if answer.is_cut else form.rewritten(prompt, answer)
    if new is None or new == prompt.old or new in earlier:
        return []
    found = line_edits(path, prompt.line, prompt.old, new)
    at = prompt.line + prompt.cursor_line
    return sorted(found, key=lambda edit: (edit.line + len(edit.old) <= at, abs(edit.line - at)))


def line_edits(path: str, line: int, old: Sequence[str], new: Sequence[str]) -> list[LineEdit]:
    """The edits that make lines `old`, which begin at `line`, to `new`, top down."""
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        LineEdit(path, line + a, tuple(old[a:b]), tuple(new[c:d]), 1.0, KIND)
        for kind, a, b, c, d in found
        if kind != "equal"
    ]


def prompt_of(form: NextEditFormat, document: EditedDocument) -> EditPrompt | None:
    """The prompt for a document, without other files and changes that spell the format's markers;
    None where the document does, as far as the prompt shows it: its model could not tell the text
    from the markers."""

    def is_plain(*texts: str) -> bool:
        return not any(form.markers.search(text) for text in texts)

    document = replace(
        document,
        changes=tuple(c for c in document.changes if is_plain("\n".join((*c.old, *c.new)))),
        others=tuple(other for other in document.others if is_plain(*other)),
    )
    prompt = form.prompt(document)
    if prompt is None or max(map(len, prompt.old), default=0) > MOST_LINE_CHARS:
        return None
    # As a whole: the cursor may stand within such a spelling.
    text = "".join(part for part in prompt.parts if not isinstance(part, Special))
    return prompt if is_plain(text) else None


def undone(lines: Sequence[str], changes: Iterable[LineChange], line: int = 0) -> list[str]:
    """`lines`, which begin at `line`, as they were before these changes of their document. A change
    whose new lines do not stand there is left out."""
    found = list(lines)
    for change in sorted(changes, key=lambda change: change.line, reverse=True):
        at = change.line - line
        if at >= 0 and tuple(found[at : at + len(change.new)]) == change.new:
            found[at : at + len(change.new)] = change.old
    return found


def earlier_windows(document: EditedDocument, line: int, n_lines: int) -> list[tuple[str, ...]]:
    """The lines of a window as they were before the last change, before the last two, and so on, as
    far as these lie in it; the last change first."""
    lines = document.lines[line : line + n_lines]
    found: list[tuple[str, ...]] = []
    taken: list[LineChange] = []
    for change in reversed(document.changes):
        is_inside = line <= change.line and change.line + len(change.new) <= line + n_lines
        if change.path != document.path or not is_inside:
            break
        taken.append(change)
        found.append(tuple(undone(lines, taken, line)))
    return found


@dataclass(frozen=True, slots=True)
class Hunk:
    """A change with lines around it, as they were right after it. start: first line, from 1."""

    change: LineChange
    start: int
    above: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def old(self) -> tuple[str, ...]:
        return (*self.above, *self.change.old, *self.below)

    @property
    def new(self) -> tuple[str, ...]:
        return (*self.above, *self.change.new, *self.below)

    @property
    def unified(self) -> str:
        """The hunk in unified diff format, its header included."""
        rows = [f"@@ -{self.start},{len(self.old)} +{self.start},{len(self.new)} @@"]
        rows += [f" {line}" for line in self.above]
        rows += [f"-{line}" for line in self.change.old]
        rows += [f"+{line}" for line in self.change.new]
        rows += [f" {line}" for line in self.below]
        return "".join(f"{row}\n" for row in rows)


def hunk_of(document: EditedDocument, change: LineChange, n_around: int) -> Hunk:
    """A change with `n_around` lines on either side, where the text of its file is shown."""
    text = document.text_of(change.path)
    if text is None:
        return Hunk(change, change.line + 1, (), ())
    later = [c for c in document.changes if c.path == change.path and c.number > change.number]
    lines = undone(text.removesuffix("\n").split("\n"), later)
    line = change.line - sum(len(c.new) - len(c.old) for c in later if c.line < change.line)
    start, end = max(0, line - n_around), line + len(change.new)
    return Hunk(change, start + 1, tuple(lines[start:line]), tuple(lines[end : end + n_around]))
