"""The replay: hunks as Git has them, references as published, costs as the curve says."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.config import load_settings
from codespec.cost.cost_curve import CostCurve
from codespec.errors import InputError
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.types import NO_TOKENS, Context, PassState
from codespec_bench import replay_report
from codespec_bench.history import History
from codespec_bench.reference import (
    Fixed,
    Ideal,
    PromptLookup,
    Sources,
    SuffixTrie,
    automaton_of,
)
from codespec_bench.replay import CONFIGS, Replay, usable
from codespec_bench.replay_draft import ReplayDraftModel
from codespec_bench.replay_report import (
    load_curve,
    print_rows,
    record,
    run,
)
from codespec_bench.writers import key_of

TOKENIZER = ByteTokenizer()
SHARED = """def shared(first, second):
    total = first * second
    return sorted(total, key=lambda item: item.weight)
"""
CURVE = CostCurve({1: 1.0, 2: 1.8, 4: 2.3, 8: 3.5, 16: 5.6})


def git(root, *args):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *identity, *args], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")

    def commit(**files):
        for name, text in files.items():
            (root / f"{name}.py").write_text(text)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "x")

    base = "".join(f"line_{i} = {i}\n" for i in range(10))
    commit(a=base, b=SHARED)
    lines = base.splitlines(keepends=True)
    changed = [
        *lines[:2],
        "first = 1\n",
        "second = 2\n",
        *lines[2:5],
        "replaced = 5\n",
        "twice = 6\n",
        *lines[6:9],
        "single = 9\n",
        *lines[9:],
    ]
    commit(a="".join(changed))
    commit(c=SHARED, d="one line\n")
    return root


def test_hunks_are_what_was_typed(repository):
    history = History(repository)
    commits = history.commits(9)
    assert len(commits) == 2  # the first commit has no parent
    first, second = commits[0].hunks
    assert first.text == "first = 1\nsecond = 2\n"
    assert first.removed == ""
    assert first.prefix == "line_0 = 0\nline_1 = 1\n"
    assert first.suffix.startswith("line_2 = 2\n")
    assert second.text == "replaced = 5\ntwice = 6\n"
    assert second.removed == "line_5 = 5\n"
    # Earlier hunks are in the prefix; the suffix is the parent's.
    assert "second = 2\n" in second.prefix
    assert second.suffix == "".join(f"line_{i} = {i}\n" for i in range(6, 10))
    assert [h.path for h in commits[1].hunks] == ["c.py"]
    assert set(commits[1].tree) == {"a.py", "b.py"}
    assert History(repository, "*.txt").commits(9) == []


def test_no_repository_is_said_so(tmp_path):
    with pytest.raises(InputError, match="not a Git repository"):
        History(tmp_path)


def sources(left, right="", repository=()):
    made = Sources(automaton_of([TOKENIZER.encode(text) for text in repository]))
    context = Context(NO_TOKENS, TOKENIZER.encode(left), TOKENIZER.encode(right))
    return made, context


def propose(make, left, right="", repository=(), emitted="", n_max=24):
    texts, context = sources(left, right, repository)
    drafter = make(texts)
    drafter.begin(context)
    return TOKENIZER.decode(
        drafter.propose(PassState(TOKENIZER.encode(emitted)), n_max).tokens
    ).decode()


def test_the_trie_rule():
    # At most as long as the match: five bytes match, six more would follow.
    assert propose(SuffixTrie, "alpha(123456)\nzlpha") == "(123"
    # Of 11 continuations none has a ratio of a tenth.
    assert propose(SuffixTrie, "".join(f"a{c}" for c in "bcdefghijkl") + "a") == ""
    # The product stops the path: 1/2 * 1/2 * 1/2 is left of 0.1 after a fourth halving.
    assert propose(SuffixTrie, "", "xyzab1 xyzab2 ", emitted="xyz").startswith("ab")
    assert propose(SuffixTrie, "q", repository=["long match here!"], emitted="long m") == "atch h"


def test_the_fixed_rule_takes_the_longest_match():
    assert propose(Fixed, "ab1", "cab23456789", emitted="cab") == "23456789"


def test_prompt_lookup_copies_after_the_last_occurrence():
    assert propose(PromptLookup, "abcX abcY abc", n_max=2) == "Y "
    assert propose(PromptLookup, "abc") == ""


def test_the_ideal_stops_where_the_text_does():
    truth = TOKENIZER.encode("(beta)")
    texts, context = sources("alpha(beta, x)\nalpha")
    drafter = Ideal(texts, lambda: truth)
    drafter.begin(context)
    assert TOKENIZER.decode(drafter.propose(PassState(), 24).tokens) == b"(beta"


def test_replay_accounts_for_every_token(repository):
    replay = Replay(repository, TOKENIZER, CURVE)
    replay.run(9)
    rows: dict[str, Any] = {str(row["config"]): row for row in replay.rows()}
    assert replay.n_hunks == 3
    n_tokens = sum(
        len(hunk.text) for commit in History(repository).commits(9) for hunk in commit.hunks
    )
    for name, row in rows.items():
        assert row["n_tokens"] == n_tokens
        assert row["n_tokens"] == pytest.approx(
            row["mat"] * (replay.results[name].n_passes), abs=1e-6
        )
        assert replay.results[name].n_passes + row["accepted"] == n_tokens
    assert rows["plain"]["speedup"] == 1.0
    assert rows["plain"]["drafted_per_pass"] == 0
    assert rows["ideal"]["share_of_ideal"] == pytest.approx(1.0)
    # The text of c.py stands in b.py: the repository drafts it.
    assert rows["codespec"]["by_source"]["repository"][0] > 10
    assert rows["codespec"]["speedup"] > 1
    ideal = replay.results["ideal"]
    assert ideal.n_accepted == ideal.n_drafted
    plain = replay.results["plain"]
    assert plain.cost == pytest.approx(plain.n_passes * float(CURVE.ms(np.array([1]))[0]))


def test_what_is_read_again_is_paid_for(repository, monkeypatch):
    curve = CostCurve(CURVE.points, rolls_back=False)
    tails: list[int] = []
    first = CostCurve.either_first

    def noted(self, state, n):
        tails.append(self.n_tail(state))
        return first(self, state, n)

    monkeypatch.setattr(CostCurve, "either_first", noted)
    cut, again = Replay(repository, TOKENIZER, CURVE), Replay(repository, TOKENIZER, curve)
    for replay in (cut, again):
        replay.run(9)
    # Drafts that know no better cost more, what is always right costs the same.
    for name, costs_more in (("fixed", True), ("ideal", False), ("plain", False)):
        ours, theirs = again.results[name], cut.results[name]
        assert ours.n_passes == theirs.n_passes
        assert (ours.cost > 1.1 * theirs.cost) == costs_more
    rows: dict[str, Any] = {str(row["config"]): row for row in again.rows()}
    assert rows["codespec"]["speedup"] > max(1, rows["fixed"]["speedup"])
    assert max(tails) > 1, "the planner has to know"


def test_curves_by_name_and_from_files(tmp_path):
    assert not load_curve("cpu-500m-hybrid-q8").rolls_back
    shipped = load_curve("cpu-500m-q8")
    assert shipped.ms(np.array([2]))[0] == pytest.approx(23.2 * 1.78)
    file = tmp_path / "curve.json"
    file.write_text('{"t1_ms": 2.0, "n": [1, 4], "ratio": [1, 2.5]}')
    assert load_curve(str(file)).ms(np.array([4]))[0] == 5.0
    with pytest.raises(InputError, match="cpu-500m-q8"):
        load_curve("no-such-curve")
    for text in ("", "{}", '{"t1_ms": 1, "n": [1, 2], "ratio": [1]}'):
        file.write_text(text)
        with pytest.raises(InputError, match=r"curve\.json: .*") as raised:
            load_curve(str(file))
    assert "not equally long" in raised.value.message
    with pytest.raises(InputError) as raised:
        load_curve(str(tmp_path))
    assert raised.value.message.count(str(tmp_path)) == 1


def test_the_command_prints_a_line_per_configuration(repository):
    command = [sys.executable, "-m", "codespec", "bench", "replay", str(repository), "--json"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["config"] for row in rows] == list(CONFIGS)
    for row in rows:
        keys = {"curve", "n_tokens", "mat", "drafted_per_pass", "speedup", "share_of_ideal"}
        assert keys <= set(row)


def test_what_a_model_wrote_is_replayed_in_its_place(repository, tmp_path):
    file, target = tmp_path / "texts.json", bundled(BUNDLED_TARGET)
    settings = load_settings({"model": {"n_threads": 1}}, env={})
    n_written = record(repository, settings, 9, "*.py", "HEAD", file)
    texts = json.loads(file.read_text())["texts"].values()
    assert len(texts) == n_written > 0
    # A model that begins as people did, and ends early.
    tokenizer = LlamaTokenizer(load_model(target, vocab_only=True))
    written = json.loads(file.read_text())
    for commit in History(repository).commits(9):
        for hunk in usable(commit, tokenizer):
            ids = tokenizer.encode(hunk.text).tolist()
            written["texts"][key_of(hunk)] = ids[: len(ids) // 2]
    file.write_text(json.dumps(written))
    told = run(repository, target, 9, "*.py", "cpu-500m-q8", 16, recorded=file)
    rows = {row["config"]: row for row in told}
    assert all(row["n_hunks"] == len(written["texts"]) for row in told)
    assert all(row["n_tokens"] == sum(map(len, written["texts"].values())) for row in told)
    # Nobody but the ideal knows where a text ends.
    assert rows["fixed"]["n_drafted"] > rows["fixed"]["accepted"] > 0
    assert rows["ideal"]["n_drafted"] == rows["ideal"]["accepted"] > 0
    other = json.dumps(json.loads(file.read_text()) | {"tokenizer": "another"})
    for content, why in (("{}", "required field"), (other, "tokens of another model")):
        file.write_text(content)
        with pytest.raises(InputError, match=why):
            run(repository, target, 9, "*.py", "cpu-500m-q8", 16, recorded=file)


def test_passes_of_a_draft_model_are_part_of_the_cost(repository):
    curve = CostCurve({1: 50.0, 17: 60.0})
    model = ReplayDraftModel([bundled(BUNDLED_DRAFT)], TOKENIZER, curve)
    replay = Replay(repository, TOKENIZER, curve, draft=model)
    replay.run(9)
    drafted: Any = replay.rows()[-1]
    result = replay.results["codespec-draft"]
    assert drafted["by_source"]["draft-model"][1] > 0
    assert model.spent_ms > 0
    passes = sum(50.0 + 0.625 * d for t in result.traces for d in t.pass_depth)
    assert result.cost > passes + model.spent_ms  # of the last hunk alone
    model.close()


def test_a_draft_model_of_other_tokens_drafts_beside_lookups(repository, capsys):
    curve, vocabulary = "cpu-600m-q8-ours", bundled(BUNDLED_TARGET)
    alone, drafted = (
        {row["config"]: row for row in run(repository, vocabulary, 50, "*.py", curve, 16, drafts=d)}
        for d in ((), [bundled(BUNDLED_DRAFT)])
    )
    assert list(drafted) == [*alone, "codespec-draft"]
    assert {name: drafted[name] for name in alone} == {
        name: row | {"draft_us_per_pass": drafted[name]["draft_us_per_pass"]}
        for name, row in alone.items()
    }
    row = drafted["codespec-draft"]
    assert row["n_tokens"] == alone["plain"]["n_tokens"]
    n_accepted, n_drafted = row["by_source"]["draft-model"]
    assert 0 <= n_accepted <= n_drafted != 0
    print_rows(list(drafted.values()))
    assert "codespec-draft" in capsys.readouterr().out


def test_the_table_tells_all_ways_apart_on_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    figures = {"n_hunks": 2, "n_tokens": 171, "curve": "cpu-500m-q8", "mat": 12.06}
    figures |= {"drafted_per_pass": 13.12, "speedup": 10.4, "share_of_ideal": 1.0}
    names = [*CONFIGS, "ideal"]
    print_rows([{"config": n, "accepted": 8, "n_drafted": 8, **figures} for n in names])
    printed = capsys.readouterr().out.split()
    assert "suffix-trie-tree" in names
    assert all(name in printed for name in names)


@pytest.mark.parametrize(("loss", "said"), [(0.3, "25% below"), (0.5, "25% above")])
def test_a_calibration_worse_than_the_table_is_said_to_be(
    capsys: pytest.CaptureFixture[str], loss: float, said: str
) -> None:
    row = {"config": "codespec", "log_loss": loss, "log_loss_table": 0.4, "reliability": {}}
    replay_report._print_calibration(row)  # pyright: ignore[reportPrivateUsage]
    assert said in " ".join(capsys.readouterr().out.split())
