"""The order of the rules, and what each of them did."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.engine.postprocess import trim
from codespec.engine.postprocess.fit import fit
from codespec.engine.postprocess.place import Place
from codespec.engine.postprocess.shape import Shape
from codespec.engine.postprocess.trials import Late, TooLateError, never
from codespec.types import Finish

_AFTER = "what stands after the cursor already"


@dataclass(frozen=True, slots=True)
class Finished:
    """text: to insert. trimmed: what was changed on the way, in words."""

    text: str
    trimmed: tuple[str, ...] = ()


def finish(
    text: str, end: int | None, ended: Finish, shape: Shape, place: Place, late: Late = never
) -> Finished:
    """The text to insert.

    text:  generated, without what healing repeats.
    end:   where `UnitStop` ended it, None where something else did.
    ended: why the generation ended.
    late:  whether there is no time left to see what fits.
    """
    notes: list[str] = []

    def note(after: str, what: str) -> str:
        nonlocal text
        if after != text:
            notes.append(what)
            text = after
        return text

    if end is not None:
        text = text[:end]
    elif ended != "stop":
        note(_finished_lines(text, ended), "an unfinished line")
    note(trim.without_invisible(text, place.line_prefix), "invisible or bidirectional characters")
    note(trim.with_indentation_of(text, place), "indentation of another style")
    is_whole = end is not None or ended == "stop"
    note(trim.without_loops(text, place.line_prefix, finished=is_whole), "repetition")
    if shape.kind == "inline":
        note(text.split("\n", 1)[0], "lines, as text follows in the cursor's line")
    note(trim.without_suffix(text, place), _AFTER)
    if shape.kind == "statement":
        note(trim.without_more(text, place), "what goes on in a line that is whole")
    text = text.rstrip() if "\n" in text else text.rstrip(" \t")
    if text.strip():
        try:
            if shape.kind == "inline" and end is not None:
                # A line of the model's own that is whole: it may end with the rest of this one.
                shorter = trim.without_rest(text, place)
                if shorter.strip() and fit(shorter, place, late) == shorter:
                    note(shorter, _AFTER)
            fitting = fit(text, place, late)
            note(fitting, "brackets that do not balance, or what would not parse here")
        except TooLateError:
            note("", "what there was no time to check here")
    return Finished(text if text.strip() else "", tuple(notes))


def _finished_lines(text: str, ended: Finish) -> str:
    """Without the line that was being written; the only one is left if it is merely long."""
    finished = text[: max(0, text.rfind("\n"))].rstrip()
    if finished.strip():
        return finished
    return text if ended == "length" else ""
