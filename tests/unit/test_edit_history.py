"""The history of changes: merged while typed, moved along, bounded, forgotten."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
from hypothesis import given

from codespec.documents import edit_history
from codespec.documents.edit_history import EditHistory, LineChange

A, B = "/w/a.py", "/w/b.py"
TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def parts(history: EditHistory) -> list[tuple[str, int, tuple[str, ...], tuple[str, ...]]]:
    return [(c.path, c.line, c.old, c.new) for c in history.changes()]


def typed(history: EditHistory, path: str, *texts: str) -> None:
    for old, new in itertools.pairwise(texts):
        history.changed(path, old, new)


def test_a_change_grows_while_it_is_typed_and_keeps_its_number() -> None:
    history = EditHistory()
    numbers: set[int] = set()
    before = TEXT
    for line in ("tw", "t", "", "2", "22", "22\nmore"):
        text = TEXT.replace("two", line)
        history.changed(A, before, text)
        before = text
        numbers |= {c.number for c in history.changes()}
    assert parts(history) == [(A, 1, ("two",), ("22", "more"))]
    assert len(numbers) == 1


def test_what_returns_to_its_old_text_vanishes() -> None:
    history = EditHistory()
    typed(history, A, TEXT, TEXT.replace("two", "2"), TEXT)
    assert history.changes() == []
    typed(history, A, TEXT, TEXT.replace("six", "6"))
    assert parts(history) == [(A, 5, ("six",), ("6",))]


def test_undoing_an_earlier_change_withdraws_it_and_no_other() -> None:
    history = EditHistory()
    both = TEXT.replace("two", "2").replace("six", "6")
    typed(history, A, TEXT, TEXT.replace("two", "2"), both, TEXT.replace("six", "6"))
    assert parts(history) == [(A, 5, ("six",), ("6",))]


def test_lines_follow_later_changes() -> None:
    history = EditHistory()
    typed(history, A, TEXT, TEXT.replace("six", "6"), "zero\n" + TEXT.replace("six", "6"))
    assert parts(history) == [(A, 6, ("six",), ("6",)), (A, 0, (), ("zero",))]


def test_changes_of_several_documents_are_in_the_order_they_were_made() -> None:
    history = EditHistory()
    history.changed(A, TEXT, TEXT.replace("two", "2"))
    history.changed(B, TEXT, TEXT.replace("two", "2"))
    history.changed(A, TEXT.replace("two", "2"), TEXT.replace("two", "2").replace("six", "6"))
    assert [(path, line) for path, line, _, _ in parts(history)] == [(A, 1), (B, 1), (A, 5)]
    assert history.paths == {A, B}
    assert history.forget(A)
    assert not history.forget(A)
    assert [path for path, *_ in parts(history)] == [B]


def test_an_older_change_that_grows_becomes_the_newest() -> None:
    history = EditHistory()
    first = TEXT.replace("two", "2")
    both = first.replace("six", "6")
    typed(history, A, TEXT, first, both, both.replace("2", "22"))
    assert [c.new for c in history.changes()] == [("6",), ("22",)]


def test_changes_that_meet_become_one() -> None:
    history = EditHistory()
    typed(
        history,
        A,
        TEXT,
        TEXT.replace("two", "2"),
        TEXT.replace("two", "2").replace("four", "4"),
        TEXT.replace("two", "2").replace("four", "4").replace("three\n", ""),
    )
    assert parts(history) == [(A, 1, ("two", "three", "four"), ("2", "4"))]


def test_several_cursors_make_several_changes() -> None:
    history = EditHistory()
    history.changed(A, TEXT, TEXT.replace("o", "0"))  # one, two, four
    assert sorted(line for _, line, _, _ in parts(history)) == [0, 3]
    typed(history, B, "x\na\nx\nb\nx\n", "y\na\ny\nb\ny\n")
    assert sorted(line for path, line, _, _ in parts(history) if path == B) == [0, 2, 4]


def test_a_document_that_changes_in_many_places_at_once_starts_anew() -> None:
    history = EditHistory()
    text = "".join(f"x\n{i}\n" for i in range(6))
    typed(history, A, text, text.replace("5", "five"))
    assert history.changes()
    history.changed(A, text.replace("5", "five"), text.replace("5", "five").replace("x", "y"))
    assert history.changes() == []


def test_undoing_changes_from_before_it_began_anew_is_no_change_and_redoing_them_is() -> None:
    history = EditHistory()
    one = TEXT.replace("two", "2")
    two = one.replace("six", "6\n6")
    typed(history, A, TEXT, one, two, two.replace("\n", "\n\n"), two)
    assert history.changes() == []
    typed(history, A, two, one)
    assert history.changes() == []
    more = one.replace("seven", "7")
    typed(history, A, one, more)
    assert parts(history) == [(A, 6, ("seven",), ("7",))]
    typed(history, A, more, one, TEXT)
    assert history.changes() == []
    typed(history, A, TEXT, one, two)
    assert parts(history) == [(A, 1, ("two",), ("2",)), (A, 5, ("six",), ("6", "6"))]


def test_later_changes_move_along_where_one_from_before_it_began_anew_is_undone() -> None:
    history = EditHistory()
    one, other = TEXT.replace("two", "2\n2"), TEXT.replace("six", "6")
    typed(history, A, TEXT, other, TEXT, one, one.replace("\n", "\n\n"), one)
    typed(history, A, one, one.replace("six", "6"))
    assert parts(history) == [(A, 6, ("six",), ("6",))]
    typed(history, A, one.replace("six", "6"), other)
    assert parts(history) == [(A, 5, ("six",), ("6",))]


def test_a_document_that_changed_unseen_starts_anew() -> None:
    history = EditHistory()
    typed(history, A, TEXT, TEXT.replace("two", "2"))
    history.changed(A, "other\n" + TEXT, "other\n" + TEXT.replace("six", "6"))
    assert parts(history) == [(A, 6, ("six",), ("6",))]


def test_a_file_that_changed_on_disk_starts_anew_unless_the_user_saved_it() -> None:
    history = EditHistory()
    typed(history, A, TEXT, TEXT.replace("two", "2"))
    history.changed(A, TEXT.replace("two", "2"), TEXT.replace("two", "2 "), on_disk=True)
    assert parts(history) == [(A, 1, ("two",), ("2 ",))]
    saved = TEXT.replace("two", "2 ")
    history.changed(A, saved, saved.replace("six", "6"), on_disk=True)
    assert history.changes() == []
    history.changed(B, TEXT, TEXT.replace("two", "2"), on_disk=True)
    assert history.changes() == []


def test_large_changes_are_not_kept_and_move_the_others() -> None:
    history = EditHistory()
    many = "".join(f"line {i}\n" for i in range(edit_history.MAX_LINES + 1))
    first = TEXT.replace("six", "6")
    typed(history, A, TEXT, first, many + first)
    assert parts(history) == [(A, 5 + edit_history.MAX_LINES + 1, ("six",), ("6",))]
    typed(history, B, TEXT, TEXT + "x" * edit_history.MAX_CHANGE_CHARS + "y")
    assert history.paths == {A}


def test_the_oldest_changes_are_dropped() -> None:
    history = EditHistory()
    n_lines = 2 * (edit_history.MAX_CHANGES + 5)
    lines = [f"line {i}" for i in range(n_lines)]
    for i in range(0, n_lines, 2):
        before = "\n".join(lines)
        lines[i] = "changed"
        history.changed(A, before, "\n".join(lines))
    changes = history.changes()
    assert len(changes) == edit_history.MAX_CHANGES
    assert changes[0].line == 10


def test_whoever_sees_a_document_tells_of_it_and_nothing_counts_twice() -> None:
    history = EditHistory()
    history.told(A, TEXT, None)
    once = TEXT.replace("two", "2")
    history.told(A, once, TEXT)
    history.told(A, once, TEXT)  # seen before by somebody else
    both = once.replace("six", "6")
    history.told(A, both, TEXT)  # who missed one
    assert parts(history) == [(A, 1, ("two",), ("2",)), (A, 5, ("six",), ("6",))]
    assert history.text(A) == both
    history.closed(A)
    assert history.changes() == []
    assert [lost.lines for lost in history.lost()] == [("two",), ("six",)]
    assert history.text(A) is None


def test_so_many_texts_are_known() -> None:
    history = EditHistory()
    for i in range(edit_history.MAX_DOCUMENTS + 1):
        history.told(f"/w/{i}.py", TEXT, None)
        history.told(f"/w/{i}.py", TEXT.replace("two", f"{i}"), TEXT)
    assert history.text("/w/0.py") is None
    assert next(change.path for change in history.changes()) == "/w/1.py"


def test_nothing_with_a_secret_is_told() -> None:
    history = EditHistory()
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
    typed(history, A, TEXT, TEXT.replace("two", f"token = '{key}'"))
    assert history.changes() == []


def test_long_and_repeated_lines_take_no_time() -> None:
    history = EditHistory()
    line = "x" * 2_000_000
    typed(history, A, line, line + "y")
    same = "same\n" * 100_000
    typed(history, B, same, same[5:], "new\n" + same, "new\n" * 100_000)
    assert history.changes() == []


LINES = st.lists(st.sampled_from("abc"), max_size=8)


@given(st.lists(LINES, min_size=2, max_size=6))
def test_taking_all_changes_back_gives_a_text_that_was(texts: list[list[str]]) -> None:
    history = EditHistory()
    seen = ["\n".join(lines) for lines in texts]
    typed(history, A, *seen)
    lines = seen[-1].split("\n")
    changes = sorted(history.changes(), key=lambda change: -change.line)
    for above, below in itertools.pairwise(changes[::-1]):
        assert above.line + len(above.new) < below.line
    for change in changes:
        end = change.line + len(change.new)
        assert tuple(lines[change.line : end]) == change.new
        assert change.old != change.new
        lines[change.line : end] = change.old
    assert "\n".join(lines) in seen


def test_the_values_are_of_the_contract() -> None:
    history = EditHistory()
    typed(history, A, TEXT, TEXT.replace("two", "2"))
    assert history.changes() == [LineChange(A, 1, ("two",), ("2",), 1)]
