"""The order of the rules, and what each of them did."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.languages.registry import record_of
from codespec.reasons import ShapeReason, Trimming
from codespec.suggest import indent, loops, trim
from codespec.suggest.candidate import Candidate
from codespec.suggest.commas import without_last_commas
from codespec.suggest.fit import Judge, fit
from codespec.suggest.json_values import JsonRules
from codespec.suggest.prose import is_in_prose, n_unopened
from codespec.suggest.shape import Shape
from codespec.suggest.strangers import (
    Knows,
    nobody,
    without_begun_comment,
    without_strangers,
)
from codespec.suggest.trials import Late, TooLateError, never
from codespec.syntax.lexer import OPENER_OF, joined
from codespec.types import Finish


@dataclass(frozen=True, slots=True)
class Finished:
    """text: to insert. trimmed: changes of the generated text, in their order."""

    text: str
    trimmed: tuple[Trimming, ...] = ()


def finish(
    generated: Candidate,
    end: int | None,
    ended: Finish,
    shape: Shape,
    judge: Judge | None = None,
    late: Late = never,
    knows: Knows = nobody,
) -> Finished:
    """The text to insert.

    generated: without what healing repeats.
    end:   where `UnitStop` ended it, None where something else did.
    ended: why the generation ended.
    judge: of the place, which candidates for it may share.
    late:  true once there is no time left to see what fits.
    knows: of people, those whom the user's other texts name.
    """
    place, now, said = generated.place, generated, generated.text
    judge = Judge(place) if judge is None else judge
    notes: list[Trimming] = []

    def note(after: str, what: Trimming) -> None:
        nonlocal now
        if after != now.text:
            notes.append(what)
            now = now.became(after)

    if end is not None:
        now = now.became(now.text[:end])
    elif ended != "stop":
        note(_finished_lines(now.text, ended), Trimming.UNFINISHED_LINE)
    visible = trim.without_invisible(now.text, place.line_prefix)
    note(visible, Trimming.INVISIBLE)
    note(without_strangers(now, knows), Trimming.STRANGER)
    note(indent.in_style(now), Trimming.INDENTATION)
    if shape.why is not ShapeReason.IN_TEXT:
        note(indent.without_doubled(now), Trimming.DOUBLED_INDENTATION)
    is_whole = end is not None or ended == "stop"
    note(loops.without_loops(now, finished=is_whole), Trimming.REPETITION)
    note(loops.without_lines_above(now), Trimming.REPETITION)
    if shape.kind == "inline":
        note(now.text.split("\n", 1)[0], Trimming.FURTHER_LINES)
    facts, in_text = record_of(place.language), shape.why is ShapeReason.IN_TEXT
    values = JsonRules(place, facts.json) if facts.json and not in_text else None
    if values is not None:
        note(values.upto_fault(now), Trimming.NO_VALUE)
    note(trim.without_suffix(now), Trimming.SUFFIX)
    if shape.kind == "inline" and end is not None and Trimming.SUFFIX not in notes:
        note(trim.without_own_line(now), Trimming.FURTHER_LINES)
    note(trim.without_code_in_text(now), Trimming.UNFIT)
    if shape.kind == "statement":
        note(trim.without_more(now), Trimming.AFTER_WHOLE_LINE)
    now = now.became(trim.without_blank_end(now))
    if now.text.strip():
        try:
            if shape.kind == "inline" and end is not None:
                # A line of the model's own that is whole: it may end with the rest of this one.
                shorter = trim.without_rest(now.text, place)
                if (
                    not _opens_more(now, shorter)
                    and shorter.strip()
                    and fit(now.became(shorter), judge, late, said) == shorter
                ):
                    note(shorter, Trimming.SUFFIX)
            fitting = fit(now, judge, late, said)
            note(_without_blank_end(fitting), Trimming.UNFIT)
        except TooLateError:
            note("", Trimming.UNCHECKED)
    if values is not None:
        note(values.with_commas(now), Trimming.COMMAS)
    elif not in_text:
        note(without_last_commas(now), Trimming.COMMAS)
    text = trim.with_blank_end(now.text, generated.text, place)
    return Finished(text if text.strip() else "", tuple(notes))


def _opens_more(candidate: Candidate, shorter: str) -> bool:
    """True if the line with a shorter text leaves more brackets open, and more than lines below
    close of those that it leaves open as it is; in prose, if the line opens what stands behind the
    cursor."""
    place = candidate.place
    bracket = place.rest.lstrip()[:1]
    if bracket in OPENER_OF and is_in_prose(place, bracket):
        before, whole = place.line_prefix, place.line_prefix + place.rest
        return n_unopened(whole, bracket) == n_unopened(before, bracket)
    n_open = len(candidate.became(shorter).whole.open)
    if n_open <= len(candidate.whole.open):
        return False
    n_before = len(place.whole_line.open)
    return n_open > n_before or n_open > len(joined(place.lines_below, place.language).extra)


def _without_blank_end(text: str) -> str:
    """The text without lines of blanks at its end, which stand behind what was taken away."""
    last = text.rstrip()
    return last if "\n" in text[len(last) :] else text


def _finished_lines(text: str, ended: Finish) -> str:
    """The text without the line that was being written, and the beginning of its comment; the only
    one is left if it is merely long."""
    finished = text[: max(0, text.rfind("\n"))]
    if finished.strip():
        return without_begun_comment(finished)
    return text if ended == "length" else ""
