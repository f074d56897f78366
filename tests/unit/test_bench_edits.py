"""Next edits on a history: what is outstanding, what is right, and how often each counts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.edits.base import CursorLine, LineChange, LineEdit, Texts
from codespec.edits.dismissals import AnyDismissed
from codespec.errors import InputError
from codespec_bench import edit_answers, edits
from codespec_bench.edit_answers import CommitAnswers, figures
from codespec_bench.edit_rule import RuleProposer
from codespec_bench.edit_session import Asking, CommitSession, in_order
from codespec_bench.edit_truth import PlacedLines, matched, placed, rest_of, substitutions
from codespec_bench.line_hunks import MAX_COMMIT_HUNKS, HunkCommit, HunkHistory, LineHunk
from codespec_bench.maintainers import edit_examples
from codespec_bench.parent_texts import ParentFiles, SessionTexts

A = "import run\n\none = run.begin(task)\nprint(1)\nprint(2)\ntwo = run.begin(task)\n"
B = "def go():\n    three = run.begin(task)\n    return 3\n"
OTHER = "def stay():\n    return run.begin(task)\n"
C = "one\ntwo\n"


def changed(text: str) -> str:
    return text.replace("run.begin(", "run.start(")


RENAMED = """\
def begin(task):
    return task


def first(task):
    return begin(task)


def other(task):
    x = begin(task)
    return x
"""


def test_examples_begin_at_a_renamed_definition(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    commit(tmp_path, a=RENAMED, c=C)
    commit(tmp_path, a=RENAMED.replace("begin", "start"), c=C)
    (last,) = HunkHistory(tmp_path).line_commits(1)
    definition = PlacedLines("a.py", 0, ("def begin(task):",), ("def start(task):",))
    assert list(edit_examples.renamed_definitions(last.hunks)) == [(0, definition)]
    found = edit_examples.gathered(tmp_path, (), [last], ("definition",))
    assert [order for _, order, _, _ in found.asks] == [2, 2, 2]
    # After the definition, after the rest of its hunk, of which there is none, and after the next.
    right = [ask for ask, is_right in zip(found.ask, found.right, strict=True) if is_right]
    assert set(right) == {0, 1, 2}
    column = found.names.index("renames")
    assert any(row[column] for row in found.rows)


def git(root: Path, *args: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(root), *identity, *args], check=True, capture_output=True
    )
    return done.stdout.decode()


def commit(root: Path, **files: str | None) -> None:
    for name, text in files.items():
        path = root / f"{name}.py"
        if text is None:
            path.unlink()
        else:
            path.write_bytes(text.encode())
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits; the second changes a call in three of its four places, and a line elsewhere."""
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    commit(root, a=A, b=B, c=C, other=OTHER)
    commit(root, a=changed(A), b=changed(B), c=C + "three\n")
    return root


@pytest.fixture
def last(repository: Path) -> HunkCommit:
    return HunkHistory(repository).line_commits(1)[0]


@pytest.fixture
def files(repository: Path, last: HunkCommit):
    history = HunkHistory(repository)
    with history.blobs() as blobs:
        held = ParentFiles(blobs)
        held.move_to(history.parent_tree(last))
        yield held


class Always:
    """Proposes the same edits each time, but those that were dismissed."""

    def __init__(self, *edits: LineEdit) -> None:
        self.edits = edits
        self.cursors: list[CursorLine] = []
        self.changes: list[Sequence[LineChange]] = []

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        self.cursors.append(cursor)
        self.changes.append(changes)
        known = [e for e in self.edits if (e.path, e.old, e.new) not in dismissed]
        return [
            e
            for e in known
            if e.path not in texts.open or e.old[0] in texts.open[e.path].split("\n")
        ]


def answers(asking: Asking, last: HunkCommit, files: ParentFiles) -> CommitAnswers:
    asks = tuple(asking.asks(last, "diff", files))
    accepting = asking.accepting(last, "diff", files)
    return CommitAnswers("repo", "rule", "diff", last.sha, last.parent, asks, accepting)


def test_hunks_are_whole_lines_in_the_order_of_the_diff(last):
    assert last.hunks == (
        LineHunk("a.py", 2, ("one = run.begin(task)",), ("one = run.start(task)",)),
        LineHunk("a.py", 5, ("two = run.begin(task)",), ("two = run.start(task)",)),
        LineHunk("b.py", 1, ("    three = run.begin(task)",), ("    three = run.start(task)",)),
        LineHunk("c.py", 2, (), ("three",)),
    )


def test_line_ends_renames_and_files_that_come_and_go(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    commit(root, a="1\r\n2\r\n3\r\n4", b="".join(f"{i}\n" for i in range(20)), gone="x\n", ends=C)
    git(root, "mv", "b.py", "moved.py")
    (root / "image.py").write_bytes(b"\0")
    moved = "".join(f"{i}\n" for i in range(19)) + "last\n"
    ends = C.replace("\n", "\r\n")
    commit(root, a="1\r\ntwo\r\n3\r\n4\r\n5\r\n", moved=moved, gone=None, come="y\n", ends=ends)
    history = HunkHistory(root)
    (only,) = history.line_commits(9)
    assert only.hunks == (
        LineHunk("a.py", 1, ("2",), ("two",)),
        LineHunk("a.py", 4, (), ("5",)),
        LineHunk("moved.py", 19, ("19",), ("last",)),
    )
    tree = history.parent_tree(only)
    assert set(tree) == {"a.py", "moved.py", "gone.py", "ends.py"}
    with history.blobs() as blobs:
        assert blobs.text(tree["a.py"]) == "1\n2\n3\n4"
        with pytest.raises(InputError, match="missing"):
            blobs.text("0" * 40)


def test_a_commit_of_too_many_hunks_is_left_out(repository):
    lines = [f"{i}\n" for i in range(2 * MAX_COMMIT_HUNKS + 2)]
    commit(repository, many="".join(lines))
    commit(repository, many="".join(f"x{line}" if i % 2 else line for i, line in enumerate(lines)))
    assert [len(each.hunks) for each in HunkHistory(repository).line_commits(9)] == [4]


def test_asks_are_right_wrong_and_silent(last, files):
    asks = Asking(RuleProposer(), 0.5).asks(last, "diff", files)
    said = [(ask.proposal and (ask.proposal.path, ask.proposal.line), ask.is_right) for ask in asks]
    assert said == [
        (("a.py", 5), True),
        (("b.py", 1), True),
        (("other.py", 1), False),  # the commit leaves that
        (None, False),
    ]
    assert [len(ask.outstanding) for ask in asks] == [3, 2, 1, 0]
    assert [ask.is_repeatable for ask in asks] == [True, True, False, False]
    assert [set(ask.documents) for ask in asks] == [
        {"a.py"}, {"a.py"}, {"a.py", "b.py"}, {"a.py", "b.py", "c.py"},
    ]  # fmt: skip
    assert len({ask.documents["a.py"] for ask in asks}) == 2


def test_figures_of_a_commit(last, files):
    found = figures([answers(Asking(RuleProposer(), 0.5), last, files)])
    counts = {name: found[name] for name in ("n_commits", "n_asked", "n_repeatable", "n_shown")}
    assert counts == {"n_commits": 1, "n_asked": 4, "n_repeatable": 2, "n_shown": 3}
    shares = {
        "precision": 2 / 3, "recall": 2 / 3, "recall_repeatable": 1.0, "quiet_rate": 1.0,
        "precision_by_commit": 2 / 3, "wrong_per_commit": 1.0, "by_accept": 2 / 4,
        "wrong_accepting": 1.0,
    }  # fmt: skip
    assert {name: found[name] for name in shares} == pytest.approx(shares)
    assert found["precision_low"] == found["precision_high"] == pytest.approx(2 / 3)


def test_what_was_wrong_counts_once(last, files):
    wrong = LineEdit("/other.py", 0, ("def stay():",), ("def leave():",), 0.9, "made up")
    asks = Asking(Always(wrong), 0.5).asks(last, "diff", files)
    assert [ask.proposal is not None for ask in asks] == [True, False, False, False]
    found = figures([answers(Asking(Always(wrong), 0.5), last, files)])
    assert (found["n_shown"], found["precision"], found["quiet_rate"]) == (1, 0.0, 1.0)


def test_what_is_right_is_shown_until_it_is_made(last, files):
    old, new = "    three = run.begin(task)", "    three = run.start(task)"
    right = LineEdit("/b.py", 1, (old,), (new,), 0.9, "made up")
    asks = Asking(Always(right), 0.5).asks(last, "diff", files)
    assert [ask.is_right for ask in asks] == [True, True, False, False]


def test_nothing_below_the_bar_is_shown(last, files):
    unlikely = LineEdit("/b.py", 0, ("def go():",), ("def come():",), 0.4, "made up")
    assert all(
        ask.proposal is None for ask in Asking(Always(unlikely), 0.5).asks(last, "diff", files)
    )
    assert Asking(Always(unlikely), 0.4).asks(last, "diff", files)[0].proposal is not None


def test_old_lines_that_do_not_stand_there_are_an_error(last, files):
    made_up = LineEdit("/b.py", 0, ("def elsewhere():",), ("",), 0.9, "made up")
    session = CommitSession(last.hunks, files)
    with pytest.raises(ValueError, match=r"b\.py, line 1"):
        session.placed(made_up)


def test_the_proposer_is_told_the_changes_and_the_cursor(last, files):
    proposer = Always()
    Asking(proposer, 0.5).asks(last, "diff", files)
    assert proposer.cursors == [
        CursorLine("/a.py", 2),
        CursorLine("/a.py", 5),
        CursorLine("/b.py", 1),
        CursorLine("/c.py", 2),
    ]
    assert [(c.path, c.line, c.old, c.new) for c in proposer.changes[-1]] == [
        (f"/{h.path}", h.line, h.old, h.new) for h in last.hunks
    ]


def test_a_shuffled_order_is_the_same_each_time(last, files):
    assert in_order(6, "diff", "a") == [0, 1, 2, 3, 4, 5]
    assert in_order(6, "shuffled", "a") == in_order(6, "shuffled", "a")
    assert sorted(in_order(6, "shuffled", "a")) == [0, 1, 2, 3, 4, 5]
    assert len({tuple(in_order(6, "shuffled", sha)) for sha in "abcdefgh"}) > 4
    proposer = Always()
    Asking(proposer, 0.5).asks(last, "shuffled", files)
    paths = [last.hunks[n].path for n in in_order(4, "shuffled", last.sha)]
    assert [cursor.path for cursor in proposer.cursors] == [f"/{path}" for path in paths]


@pytest.mark.parametrize("order", ["diff", "shuffled"])
def test_a_session_that_accepts_ends_with_the_commit(last, files, order):
    named = HunkCommit("a", last.parent, last.hunks, ())  # shuffled by its name
    accepting = Asking(RuleProposer(), 0.5).accepting(named, order, files)
    assert accepting.n_hunks == 4
    # The first of the three calls is changed by hand, and the line elsewhere.
    assert accepting.by_accept == accepting.n_right == 2
    assert accepting.n_shown - accepting.n_right == 1


@pytest.mark.parametrize("sha", ["a", "b", "c", "d"])
def test_any_order_ends_with_the_text_of_the_commit(repository, sha):
    text = "".join(f"{i}\n" for i in range(40))
    after = text.replace("3\n", "3\nthree\n").replace("7\n8\n", "").replace("\n1", "\none\n+1")
    commit(repository, text=text)
    commit(repository, text=after)
    history = HunkHistory(repository)
    (last,) = history.line_commits(1)
    with history.blobs() as blobs:
        held = ParentFiles(blobs)
        held.move_to(history.parent_tree(last))
        session = CommitSession(last.hunks, held)
        for number in in_order(len(last.hunks), "shuffled", sha):
            assert not session.is_made(number)
            n_made = sum(session.is_made(n) for n in range(len(last.hunks)))
            assert len(session.outstanding()) == len(last.hunks) - n_made
            session.make(number)
            assert session.is_made(number)
        assert session.texts.now("text.py") == after


def test_a_hunk_that_was_accepted_in_part_needs_a_hand(repository):
    before = "begin(one)\nbegin(two)\nthree\n\nbegin(four)\n"
    commit(repository, text=before)
    commit(repository, text="start(one)\nstart(two)\nTHREE\n\nstart(four)\n")
    history = HunkHistory(repository)
    (last,) = history.line_commits(1)
    part = LineEdit("/text.py", 1, ("begin(two)",), ("start(two)",), 0.9, "made up")
    with history.blobs() as blobs:
        held = ParentFiles(blobs)
        held.move_to(history.parent_tree(last))
        session = CommitSession(last.hunks, held)
        session.accept(session.placed(part))
        assert [(h.line, h.old) for h in session.outstanding()] == [
            (0, ("begin(one)",)), (2, ("three",)), (4, ("begin(four)",)),
        ]  # fmt: skip
        accepting = Asking(Always(part), 0.5).accepting(last, "shuffled", held)
        assert (accepting.n_hunks, accepting.by_accept) == (2, 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("b", "c"), ("b", "x", "c")),  # said with lines that stay
        ((), ("x",)),
    ],
)
def test_the_same_insertion_is_right_however_it_is_said(old, new):
    text = ["a", "b", "c"]
    hunk = placed("p", 2, (), ("x",), text)
    line = 1 if old else 2
    assert matched(placed("p", line, old, new, text), [hunk]) == hunk


def test_insertions_and_deletions_slide():
    text = ["", "f()", "", "g()", ""]
    below = placed("p", 4, (), ("", "h()"), text)
    above = placed("p", 3, (), ("h()", ""), ["", "f()", "", "", "g()"])
    assert below.n_up == 0
    assert placed("p", 5, (), ("h()", ""), text).highest == below.highest
    assert matched(placed("p", 5, (), ("h()", ""), text), [below]) == below
    assert matched(above, [below]) is None
    removed = placed("p", 0, ("", "f()"), (), text)
    assert matched(placed("p", 1, ("f()", ""), (), text), [removed]) == removed
    assert matched(placed("p", 2, ("",), (), text), [removed]) is None


HUNK = PlacedLines("p", 10, ("a(1)", "b(1)", "c(1)"), ("a(2)", "b(2)", "c(2)"))
GROWN = PlacedLines("p", 10, ("a(1)", "b(1)"), ("a(2)", "new_line = x", "b(2)"))


@pytest.mark.parametrize(
    ("hunk", "made", "rest"),
    [
        (HUNK, PlacedLines("p", 11, ("b(1)",), ("b(2)",)), [(10, 1, 1), (12, 1, 1)]),
        (HUNK, PlacedLines("p", 10, ("a(1)", "b(1)"), ("a(2)", "b(2)")), [(12, 1, 1)]),
        (HUNK, PlacedLines("p", 10, ("a(1)",), ("b(2)",)), None),  # another line's text
        (HUNK, PlacedLines("p", 11, ("b(1)",), ("b(2) ",)), None),  # white space counts
        (HUNK, PlacedLines("p", 11, ("b(1)",), ()), None),
        (HUNK, PlacedLines("q", 11, ("b(1)",), ("b(2)",)), None),
        (HUNK, PlacedLines("p", 12, ("c(1)", "d"), ("c(2)", "d(2)")), None),  # goes beyond it
        (GROWN, PlacedLines("p", 11, ("b(1)",), ("b(2)",)), [(10, 1, 2)]),
        (GROWN, PlacedLines("p", 10, ("a(1)",), ("a(2)", "new_line = x")), [(12, 1, 1)]),
        (GROWN, PlacedLines("p", 11, ("b(1)",), ("a(2)",)), None),
        (PlacedLines("p", 3, ("x", "y"), ()), PlacedLines("p", 4, ("y",), ()), [(3, 1, 0)]),
        (PlacedLines("p", 3, (), ("x", "y")), PlacedLines("p", 3, (), ("x",)), None),
    ],
)  # fmt: skip
def test_parts_of_a_hunk(hunk, made, rest):
    found = rest_of(hunk, made)
    assert (found and [(h.line, len(h.old), len(h.new)) for h in found]) == rest


def test_substitutions_hold_an_identifier_or_a_literal():
    assert list(substitutions(("x = f(a, b)",), ("x = g(a, b)",))) == [(("f",), ("g",))]
    assert list(substitutions(("x = 1",), ("x = 2",))) == [(("1",), ("2",))]
    assert list(substitutions(("f(a,b)",), ("f(a, b)",))) == []
    assert list(substitutions(("return f(a)",), ("await f(a)",))) == []
    assert list(substitutions((), ("    x = 1", "      y"))) == [((), ("x = 1", "  y"))]


def test_the_index_of_words_moves_with_the_parent(repository):
    commit(repository, b="def gone():\n    pass\n", c=None, fresh="run.start(five)\n")
    commit(repository, a="run.now(six)\n")
    history = HunkHistory(repository)
    first, second, third = history.line_commits(9)
    with history.blobs() as blobs:
        moved = ParentFiles(blobs)
        for each in (first, second, third, first, third):
            moved.move_to(history.parent_tree(each))
        fresh = ParentFiles(blobs)
        fresh.move_to(history.parent_tree(third))
        for words in (["run"], ["begin"], ["start"], ["run", "start"], ["three"], [], ["nowhere"]):
            assert moved.holding(words) == fresh.holding(words)
        assert moved.holding(["run", "start"]) == {"a.py", "fresh.py"}
        texts = SessionTexts(moved)
        texts.set_text("a.py", "nothing")
        assert list(texts.holding(["start"], 9)) == [("/fresh.py", "run.start(five)\n")]
        assert list(texts.holding(["run"], 1)) == [("/fresh.py", "run.start(five)\n")]


@pytest.mark.slow
def test_answers_can_be_counted_again(repository, tmp_path):
    kept = tmp_path / "answers.jsonl"
    told = ["bench", "edits", str(repository), "--config", "rule", "--json", "--answers", str(kept)]
    done = CliRunner().invoke(main, told)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    assert [(row["bench"], row["config"], row["order"]) for row in rows] == [
        ("edits", "rule", "diff"),
        ("edits", "rule", "shuffled"),
    ]
    assert rows[0]["precision"] == pytest.approx(2 / 3)
    again = edits.rows(edit_answers.read(kept))
    for row, counted in zip(rows, again, strict=True):
        assert {name: row[name] for name in counted} == counted


@pytest.mark.slow
def test_people_are_shown_a_table_of_several_repositories(repository, tmp_path):
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repository), str(other))
    told = ["bench", "edits", str(repository), str(other), "--config", "rule", "--order", "diff"]
    done = CliRunner().invoke(main, told)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    rows = [words for words in lines if words[:1] == ["rule,"]]
    assert [row[1] for row in rows] == ["all", "repo", "other", "all:"]
    assert [row[2] for row in rows[:3]] == ["8", "4", "4"]
    assert "precision 0.667 (0.67 to 0.67)" in done.output


@pytest.mark.parametrize("line", ['{"outstanding": []}', '{"hunks": []}', "[]"])
def test_a_file_without_answers_is_told(tmp_path, line):
    file = tmp_path / "other.jsonl"
    file.write_text(line)
    with pytest.raises(InputError, match=r"other\.jsonl"):
        edit_answers.read(file)


def test_a_history_without_such_files_is_told(repository):
    plan = edits.EditsPlan([repository], ["rule"], ["diff"], 9, ["*.go"], "HEAD", 0.5)
    with pytest.raises(InputError, match="no commit changes lines of such files"):
        edits.run(plan)
