"""Rewriting: windows as they stood and became, minimal diffs, bounds that hold, fixed lookups as
published."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer
from codespec.cost.cost_curve import CostCurve
from codespec.errors import InputError
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.native import SuffixAutomaton
from codespec.types import NO_TOKENS, Context, PassState, Tokens
from codespec_bench import rewrite_report
from codespec_bench.history import History, Hunk
from codespec_bench.reference import PromptLookup, Sources
from codespec_bench.rewrite import CONFIGS, LOOKUPS, Rewrite
from codespec_bench.rewrite_windows import (
    N_LINES,
    FixedLookup,
    IdealRewrite,
    LastNgrams,
    Window,
    pairs,
    windows,
)

TOKENIZER = ByteTokenizer()
CURVES = {
    "cpu": CostCurve({1: 1.0, 2: 1.1, 8: 1.5, 16: 2.2}),
    "gpu": CostCurve({1: 1.0, 2: 1.3, 17: 2.3}, back_ms=1.1, steady={5: 1.2, 17: 1.9}),
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: the second one changes a line, leaves two out and adds one."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]

    def git(*args: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *identity, *args], check=True)

    lines = [f"name_{i} = value_{i} + offset\n" for i in range(60)]
    git("init", "-q")
    (tmp_path / "a.py").write_text("".join(lines))
    git("add", "-A")
    git("commit", "-qm", "x")
    lines[9] = "name_9 = other_9 + offset\n"
    lines[30:32] = []
    lines[50:50] = ["added = value_1 + offset\n"]
    (tmp_path / "a.py").write_text("".join(lines))
    git("commit", "-qam", "y")
    return tmp_path


def test_windows_are_the_text_before_and_after_a_hunk(repository: Path):
    [commit] = History(repository, min_lines=0).commits(9)
    changed, removed, added = windows(commit.hunks, TOKENIZER)
    old, new = text(changed.old), text(changed.new)
    assert old.count("\n") == new.count("\n") == N_LINES
    assert old.replace("value_9 ", "other_9 ") == new
    assert text(changed.prompt).endswith(f"current:\n{old}")
    assert text(removed.old).count("\n") == N_LINES
    assert text(removed.new).count("\n") == N_LINES - 2
    assert text(added.new).count("\n") == N_LINES + 1
    # What the commit changed before is in the file, and told.
    assert "name_9 = other_9 + offset" in text(added.prompt).partition("original:")[0]
    assert "updated:\nname_9 = other_9 + offset\n" in text(added.prompt)
    assert "updated:" not in text(changed.prompt)


def test_windows_at_the_ends_of_a_file_and_too_long_ones():
    lines = [f"{i}\n" for i in range(40)]

    def window(at: int, n_removed: int, added: str) -> list[Window]:
        before, rest = lines[:at], lines[at:]
        hunk = Hunk(
            "a.py", "".join(before), added, "".join(rest[n_removed:]), "".join(rest[:n_removed])
        )
        return list(windows([hunk], TOKENIZER))

    assert text(window(0, 1, "x\n")[0].old) == "".join(lines[:N_LINES])
    assert text(window(39, 1, "x\n")[0].old) == "".join(lines[-N_LINES:])
    assert window(5, N_LINES, "x\n")
    assert not window(5, N_LINES + 1, "x\n")
    assert not window(5, 1, "x" * 2000)


tokens = st.lists(st.integers(0, 3), min_size=1, max_size=25)


@settings(max_examples=200, deadline=None)
@given(tokens, tokens)
def test_a_minimal_diff(old: list[int], new: list[int]):
    found = pairs(ids(old), ids(new))
    kept = [(i, j) for j, i in enumerate(found) if i >= 0]
    assert all(old[i] == new[j] for i, j in kept)
    assert [i for i, _ in kept] == sorted({i for i, _ in kept})
    assert len(kept) == common(old, new)


def common(old: list[int], new: list[int]) -> int:
    """Length of a longest common subsequence, as defined."""
    table = np.zeros((len(old) + 1, len(new) + 1), int)
    for i, a in enumerate(old):
        for j, b in enumerate(new):
            longer = max(table[i, j + 1], table[i + 1, j])
            table[i + 1, j + 1] = table[i, j] + 1 if a == b else longer
    return int(table[-1, -1])


@settings(max_examples=200, deadline=None)
@given(tokens, tokens, st.sampled_from([2, 3, 4]), st.integers(1, 9), st.integers(1, 12))
def test_fixed_lookups_draft_as_prompt_lookup_does(
    prompt: list[int], output: list[int], n: int, k: int, n_max: int
):
    fixed = FixedLookup(LastNgrams(ids(prompt)), n, k)
    published = PromptLookup(Sources(SuffixAutomaton()), n, k)
    context = Context(ids(prompt), ids(prompt))
    for drafter in (fixed, published):
        drafter.begin(context)
    for end in range(0, len(output), 2):
        state = PassState(ids(output[:end]))
        drafts = [drafter.propose(state, n_max).tokens.tolist() for drafter in (fixed, published)]
        assert drafts[0] == drafts[1]


def test_the_ideal_copies_what_will_be_accepted_and_pays():
    window = Window("", NO_TOKENS, encoded("abcdefgh ij"), encoded("abXdefgh"))

    def draft(emitted: str, curve: CostCurve, width: int = 1) -> str:
        ideal = IdealRewrite(window, curve, width)
        return text(ideal.propose(PassState(encoded(emitted)), 64).tokens)

    assert draft("", CostCurve({1: 1.0})) == "ab"
    assert draft("ab", CostCurve({1: 1.0})) == ""
    assert draft("abX", CostCurve({1: 1.0})) == "defgh"
    assert draft("abX", CostCurve({1: 1.0, 3: 1.1, 4: 9.0})) == "de"
    dear = CostCurve({1: 1.0, 2: 4.0}, steady={4: 1.5})
    assert draft("abX", dear) == ""
    assert draft("abX", dear, 4) == "def"


def test_every_configuration_writes_every_window(repository: Path):
    rewrite = Rewrite(repository, TOKENIZER, CURVES)
    rewrite.run(9)
    rows = {(row["config"], row["curve"]): row for row in rewrite.rows()}
    assert set(rows) == {(config, curve) for config in CONFIGS for curve in CURVES}
    assert len({row["n_tokens"] for row in rows.values()}) == 1
    for (config, curve), row in rows.items():
        plain, ideal = rows["plain", curve], rows["ideal", curve]
        assert row["n_windows"] == 3
        assert row["share_of_ideal"] == pytest.approx(row["speedup"] / ideal["speedup"])
        assert (plain["speedup"], plain["mat"]) == (1.0, 1.0)
        assert row["mat"] > 1 or config == "plain"
    for curve in CURVES:
        ours = rows["codespec", curve]
        assert ours["by_source"]["aligned"][0] > 0
        assert ours["speedup"] > max(rows[name, curve]["speedup"] for name in LOOKUPS)
    # Fixed lookups make the same passes whatever they cost.
    for name in LOOKUPS:
        assert rows[name, "cpu"]["mat"] == rows[name, "gpu"]["mat"]


def test_a_repository_without_edits_is_said_so(repository: Path):
    with pytest.raises(InputError, match="no edits to replay"):
        rewrite_report.run(
            repository, bundled(BUNDLED_TARGET), ["cpu-600m-q8-ours"], 9, "*.txt", "HEAD"
        )


def ids(found: list[int]) -> Tokens:
    return np.array(found, np.int32)


def encoded(said: str) -> Tokens:
    return TOKENIZER.encode(said)


def text(found: Tokens) -> str:
    return TOKENIZER.decode(found).decode()
