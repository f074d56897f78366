"""Restraint: fewer suggestions and next edits, shorter ones, quieter ones, for who asks.

Several may ask, the user and files of a workspace among them: for each point, who asks for less is
heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from codespec.limits import Milliseconds
from codespec.reasons import Reason

Where: TypeAlias = Literal["workspace", "file", "line"]
"""How far from the cursor a next edit may be proposed."""


class Restraint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Points on which less may be asked for. A default asks for nothing; of the values of a
    `Literal`, each asks for less than those before it."""

    trigger: Literal["auto", "subtle", "manual"] = "auto"
    """Suggestions that nobody asked for: "auto": shown; "subtle": a mark says that one is ready,
    and a key shows it, until the next edit; a part that is accepted leaves the rest; "manual":
    none."""
    lines: Literal["auto", "single"] = "auto"
    """"single": a suggestion in an editor ends with its line."""
    eagerness: Literal["high", "medium", "low"] = "high"
    """Suggestions that nobody asked for: lines that are not likely enough to be kept are left out
    at "medium", more of them at "low"; at "high" none are, and no probability is computed."""
    in_comments: bool = True
    """Suggestions in comments that nobody asked for."""
    in_strings: bool = True
    """Suggestions in strings that nobody asked for."""
    idle_ms: Milliseconds = 0.0
    """Milliseconds without a key before the model begins with a suggestion that nobody asked for,
    beside what the editor waits itself."""


NO_RESTRAINT = Restraint()


class EditRestraint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Points on which less may be asked for of next edits, as in `Restraint`."""

    enabled: bool = True
    """Next edits in editors that show them."""
    eagerness: Literal["high", "medium", "low"] = "high"
    """Edits that are not likely enough to be wanted are left out: at "low" most, at "high"
    fewest."""
    where: Where = "workspace"
    """Places that are looked at: "workspace", "file" for those of the document, "line" for the
    cursor's line."""


NO_EDIT_RESTRAINT = EditRestraint()


def strictest(*asked: Restraint) -> Restraint:
    """The value of each point that asks for least."""
    return Restraint(**_strictest(Restraint, asked))


def strictest_edits(*asked: EditRestraint) -> EditRestraint:
    """The value of each point that asks for least."""
    return EditRestraint(**_strictest(EditRestraint, asked))


def _strictest(kind: type[msgspec.Struct], asked: Sequence[msgspec.Struct]) -> dict[str, Any]:
    return {
        field.name: max(
            (getattr(each, field.name) for each in asked),
            key=lambda value, kind=field.type: _strictness(kind, value),
            default=field.default,
        )
        for field in msgspec.structs.fields(kind)
    }


def _strictness(kind: Any, value: Any) -> float:
    """Rank of a value: the higher, the less it asks for."""
    if get_origin(kind) is Literal:
        return get_args(kind).index(value)
    return not value if kind is bool else value


class Restrained(Reason):
    """Point of a `Restraint` that keeps a suggestion away which nobody asked for."""

    MANUAL = "manual", "completion.trigger is manual: suggestions come when you ask"
    IN_COMMENT = "in_comment", "completion.in_comments is off"
    IN_STRING = "in_string", "completion.in_strings is off"


def why_restrained(by: Restraint, kind_of_text: Callable[[], str]) -> Restrained | None:
    """The point that keeps away what nobody asked for; None if nothing does.

    kind_of_text: "code", "string" or "comment", as the cursor stands in; called if that matters.
    """
    if by.trigger == "manual":
        return Restrained.MANUAL
    if by.in_comments and by.in_strings:
        return None
    kind = kind_of_text()
    if kind == "comment" and not by.in_comments:
        return Restrained.IN_COMMENT
    return Restrained.IN_STRING if kind == "string" and not by.in_strings else None
