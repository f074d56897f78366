"""Restraint: the one who asks for less is heard."""

from __future__ import annotations

import itertools

import pytest

from codespec.config import CompletionSettings, EditsSettings
from codespec.reasons import Reason
from codespec.restraint import (
    NO_EDIT_RESTRAINT,
    NO_RESTRAINT,
    EditRestraint,
    Restrained,
    Restraint,
    strictest,
    strictest_edits,
    why_restrained,
)
from codespec.rules.restrictions import parse_restrictions
from codespec.syntax.text_kind import text_kind
from codespec.syntax.unasked import why_not_here
from codespec.usage.suppression import Suppression


def test_the_strictest_of_each_point_holds() -> None:
    loud = Restraint(idle_ms=100.0, in_strings=False)
    quiet = Restraint(trigger="manual", lines="single", in_comments=False)
    every = Restraint(
        trigger="manual", lines="single", in_comments=False, in_strings=False, idle_ms=100.0
    )
    for order in itertools.permutations((loud, quiet, NO_RESTRAINT, Restraint(trigger="subtle"))):
        assert strictest(*order) == every
    assert strictest() == NO_RESTRAINT


def test_settings_are_restrained_never_loosened() -> None:
    mine = CompletionSettings(trigger="subtle", max_tokens=9)
    assert mine.restrained(NO_RESTRAINT) == mine
    assert mine.restrained(Restraint(trigger="manual")).trigger == "manual"
    assert mine.restrained(Restraint(lines="single")) == CompletionSettings(
        trigger="subtle", lines="single", max_tokens=9
    )


def test_of_next_edits_less_may_be_asked_for_too() -> None:
    few = EditRestraint(eagerness="low")
    near = EditRestraint(where="line", enabled=False)
    for order in itertools.permutations(
        (few, near, NO_EDIT_RESTRAINT, EditRestraint(where="file"))
    ):
        assert strictest_edits(*order) == EditRestraint(
            eagerness="low", where="line", enabled=False
        )
    mine = EditsSettings(where="file")
    assert mine.restrained(NO_EDIT_RESTRAINT) == mine
    assert mine.restrained(few) == EditsSettings(where="file", eagerness="low")
    assert mine.restrained(EditRestraint(eagerness="high", where="workspace")) == mine


def test_a_file_of_the_workspace_asks_for_fewer_next_edits() -> None:
    found = parse_restrictions(b'trigger = "manual"\n[edits]\nwhere = "line"\n')
    assert found.restraint == Restraint(trigger="manual")
    assert found.edits == EditRestraint(where="line")
    assert "model" in parse_restrictions(b'[edits]\nmodel = "other"\n').why_off


def test_a_file_of_the_workspace_asks_for_less() -> None:
    found = parse_restrictions(b'trigger = "manual"\nin_comments = false\nexclude = ["a"]\n')
    assert found.restraint == Restraint(trigger="manual", in_comments=False)
    assert found.exclude == ("a",)
    assert found.why_off == ""
    assert "trigger" in parse_restrictions(b'trigger = "loud"').why_off
    assert 'did you mean "trigger"?' in parse_restrictions(b'triger = "manual"').why_off


@pytest.mark.parametrize(
    ("by", "kind", "why"),
    [
        (Restraint(), "comment", None),
        (Restraint(trigger="subtle"), "code", None),
        (Restraint(trigger="manual"), "code", Restrained.MANUAL),
        (Restraint(in_comments=False), "comment", Restrained.IN_COMMENT),
        (Restraint(in_comments=False), "string", None),
        (Restraint(in_strings=False), "string", Restrained.IN_STRING),
        (Restraint(in_strings=False, in_comments=False), "code", None),
    ],
)
def test_why_nothing_is_suggested_unasked(by: Restraint, kind: str, why: Restrained | None) -> None:
    assert why_restrained(by, lambda: kind) is why


@pytest.mark.parametrize(
    ("by", "prefix", "suffix", "deleted", "why"),
    [
        (Restraint(), "x = f(", ")\ny = 2\n", False, None),
        (Restraint(), "x = f(", ")\n", True, Suppression.AFTER_DELETION),
        (Restraint(), "x = ", "y\n", False, Suppression.IN_WORD),
        (Restraint(), "x = ", " + 1\n", True, Suppression.BEFORE_TEXT),
        (Restraint(trigger="manual"), "x = ", "y\n", False, Restrained.MANUAL),
        (Restraint(in_comments=False), "x = 1  # of ", "\n", False, Restrained.IN_COMMENT),
        (Restraint(in_strings=False), "x = 'of ", "'\n", False, Restrained.IN_STRING),
        (Restraint(in_strings=False), "x = ", "\n", False, None),
    ],
)
def test_settings_and_places_rule_out_what_nobody_asked_for(
    by: Restraint, prefix: str, suffix: str, deleted: bool, why: Reason | None
) -> None:
    for path, language_id in (("/project/a.py", ""), ("Untitled-1", "python")):
        assert why_not_here(by, prefix, suffix, path, language_id, deleted) is why


@pytest.mark.parametrize(
    ("path", "prefix", "kind"),
    [
        ("a.py", "x = 1  # what", "comment"),
        ("a.py", "x = '# what", "string"),
        ("a.py", "x = '# what'", "code"),
        ("a.py", "# what\n", "code"),
        ("a.py", 'def f():\n    """What', "comment"),
        ("a.py", 'x = """what\nnow', "string"),
        ("a.go", "/* what\nnow", "comment"),
        ("a.go", "x := `what\nnow", "string"),
        ("a.rs", "fn f<'a>(x: &'a ", "code"),
        ("a.sh", "cat <<END\nwhat", "string"),
        ("a.js", "const x = `${y", "string"),
        ("a.html", "<p>it's", "code"),
        ("a.html", "<script>\n// what", "comment"),
        ("a.unknown", "# it's what", "code"),
    ],
)
def test_the_kind_of_text(path: str, prefix: str, kind: str) -> None:
    assert text_kind(prefix, "\n</script>" if path == "a.html" else "", path) == kind
