"""Drafters on known text: what they propose, from where, and what they learn."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.documents.live import LiveDocument
from codespec.documents.sources import PREFIX, REPOSITORY, SUFFIX
from codespec.drafters.base import Plan, Traits
from codespec.drafters.draft_model import DRAFT_MODEL
from codespec.drafters.guard import GuardPolicy, MalformedError
from codespec.drafters.lookup import LookupDrafter
from codespec.drafters.planners import Planners
from codespec.drafters.token_kinds import token_kinds
from codespec.native import Planner, Segment
from codespec.types import ANY_PASS, NO_DRAFT, NO_TOKENS, Context, Draft, PassState, Source, Verdict
from codespec_bench.replay_trees import segment_of
from tests.drafters import Script, ScriptedDrafter, combined, drafter_over

TOKENIZER = ByteTokenizer()
KINDS = token_kinds(TOKENIZER)


class OneFile:
    """A repository of one text."""

    def __init__(self, text: str):
        self._segment = segment_of([TOKENIZER.encode(text)])
        self.skipped: list[str] = []

    def segments(self, skip: Collection[str] = ()) -> Sequence[tuple[Segment, None]]:
        self.skipped += skip
        return [(self._segment, None)]


def new_planner() -> Planner:
    return Planners(KINDS).of("")


def drafter_for(
    prefix: str,
    suffix: str = "",
    repository: OneFile | None = None,
    planner: Planner | None = None,
    curve: CostCurve = FLAT,
    max_leaves: int = 1,
):
    document = LiveDocument(TOKENIZER)
    document.update(prefix, suffix)
    planner = planner or new_planner()
    drafter = LookupDrafter(
        lambda path: document,
        lambda workspace: planner,
        lambda workspace: repository,
        curve=curve,
        max_leaves=max_leaves,
    )
    context = Context(
        NO_TOKENS, document.left, document.right, path="/w/a.py", workspace="/w" * bool(repository)
    )
    drafter.begin(context)
    return drafter


def propose(drafter, emitted="", n=8):
    draft = drafter.propose(PassState(TOKENIZER.encode(emitted)), n)
    source = Source.of(int(draft.sources[0])) if len(draft) else None
    return TOKENIZER.decode(draft.tokens).decode(), source


def test_the_text_before_the_cursor():
    drafter = drafter_for("alpha(beta, gamma)\nalpha(be")
    assert propose(drafter) == ("ta, gamm", PREFIX)


def test_the_text_after_the_cursor():
    drafter = drafter_for("first = ", "second\nfirst = third\n")
    assert propose(drafter, n=5) == ("third", SUFFIX)


def test_other_files():
    repository = OneFile("def function(argument):")
    drafter = drafter_for("def func", repository=repository)
    assert propose(drafter, n=4) == ("tion", REPOSITORY)
    assert repository.skipped == ["/w/a.py"]


def test_the_longer_match_wins():
    drafter = drafter_for("xab1 def compute_ab", repository=OneFile("def compute_ab2"))
    assert propose(drafter, n=1) == ("2", REPOSITORY)


def test_output_counts_as_context():
    drafter = drafter_for("key: value; other: thing; ")
    assert propose(drafter, "key", n=7) == (": value", PREFIX)
    # And output itself can be repeated.
    assert propose(drafter, "zq1zq", n=1) == ("1", PREFIX)


def test_nothing_matches():
    assert drafter_for("abc").propose(PassState(TOKENIZER.encode("Z")), 4) is NO_DRAFT


def texts(draft: Draft) -> set[str]:
    """The text of each path of a tree."""
    parents, tokens = draft.parents.tolist(), draft.tokens
    said: list[str] = []
    for parent, token in zip(parents, tokens, strict=True):
        before = said[parent] if parent >= 0 else ""
        said.append(before + TOKENIZER.decode([int(token)]).decode())
    return set(said)


def test_where_width_costs_nothing_branches_are_looked_up_further():
    """The runner-up of a vote is a single token; what follows it stands in the text as well."""
    drafter = drafter_for("get(one) get(one) get(two) get(", max_leaves=8)
    found = texts(drafter.propose(PassState(), 16))
    assert {"one)", "two)"} <= found


def test_where_width_costs_nothing_the_last_token_alone_is_looked_up_as_well():
    """The longest match knows one continuation, a shorter one another."""
    text = "a.name b.kind c.kind d.kind a."
    wide = texts(drafter_for(text, max_leaves=8).propose(PassState(), 16))
    assert {"name", "kind"} <= wide
    steep = CostCurve({1: 1.0, 16: 16.0})
    narrow = texts(drafter_for(text, curve=steep, max_leaves=8).propose(PassState(), 16))
    assert "kind" not in narrow


def test_a_draft_is_never_longer_than_asked():
    drafter = drafter_for("abcabcabcabc")
    for n in range(1, 9):
        assert len(drafter.propose(PassState(), n)) <= n


def test_sources_that_lose_are_weighed_again():
    """The document says one thing and the repository another, again and again: whoever is right
    is drafted in the end, whoever it is."""
    for right, wrong in (("beta!", "gamma"), ("gamma", "beta!")):
        planner = new_planner()
        for _ in range(60):
            drafter = drafter_for("alpha beta! alpha ", "", OneFile("alpha gamma"), planner)
            draft = drafter.propose(PassState(), 1)
            drafter.observe(NO_TOKENS, draft, Verdict(tuple(right.encode()), ()))
        drafter = drafter_for("alpha beta! alpha ", "", OneFile("alpha gamma"), planner)
        assert propose(drafter, n=1)[0] == right[0] != wrong[0]


def test_a_tree_where_branches_are_allowed():
    document = LiveDocument(TOKENIZER)
    document.update("a: yes\nb: no\nc: yes\nd: no\ne: ", "")
    for max_leaves in (1, 4):
        drafter = LookupDrafter(
            lambda path: document, lambda workspace: new_planner(), max_leaves=max_leaves
        )
        drafter.begin(Context(NO_TOKENS, document.left))
        draft = drafter.propose(PassState(), 40)
        roots = draft.tokens[draft.parents == -1]
        assert len(roots) == min(max_leaves, 2)
        assert set(roots.tolist()) <= set(b"ny")


def test_of_two_documents_with_one_path_each_drafts_from_its_own_text():
    documents = {name: LiveDocument(TOKENIZER) for name in ("/w/a.py", "another")}
    for name, document in documents.items():
        document.update("said: ", f"\nsaid: {name}\n")
        lookup = LookupDrafter(documents.__getitem__, lambda workspace: new_planner(), curve=CHEAP)
        lookup.begin(Context(NO_TOKENS, document.left, path="/w/a.py", document=name))
        draft = lookup.propose(PassState(), 16)
        assert TOKENIZER.decode(draft.tokens).startswith(name.encode()[:4])


CHEAP = CostCurve({1: 1.0, 17: 1.1})
DEAR = CostCurve({1: 1.0, 2: 2.0, 16: 16.0})


def test_the_model_drafts_what_it_would_say():
    logits = hashed_logits(20)
    model = FakeTarget(logits, 20, eog=frozenset())
    drafter = drafter_over(model, CHEAP)
    drafter.begin(Context(np.array([1, 2, 3], np.int32)))
    draft = drafter.propose(PassState(np.array([4], np.int32)), 5)
    context = [1, 2, 3, 4]
    for token in draft.tokens.tolist():
        assert token == int(logits(tuple(context[-3:])).argmax())
        context.append(token)
    assert len(draft) >= 1
    assert draft.sources.tolist() == [DRAFT_MODEL] * len(draft)


def test_the_model_stops_drafting_where_it_does_not_pay():
    drafter = drafter_over(FakeTarget(hashed_logits(20), 20), DEAR)
    drafter.begin(Context(np.array([1], np.int32)))
    drafts = [len(drafter.propose(PassState(), 8)) for _ in range(100)]
    # But it tries again now and then: a drafter that never drafts never learns.
    assert set(drafts) == {0, 1}
    assert sum(drafts) <= 4


def test_a_prompt_that_takes_long_to_read_is_read_only_where_that_is_repaid():
    """Reading takes what 25 passes of the one target take, a quarter of one of the other."""
    prompt = np.arange(500, dtype=np.int32) % 20
    own = CostCurve({1: 0.05, 2: 0.1})
    for scale, drafts in ((1.0, False), (100.0, True)):
        curve = CostCurve({1: scale, 17: 1.1 * scale})
        drafter = drafter_over(FakeTarget(hashed_logits(20), 20, eog=frozenset()), curve, own)
        drafter.begin(Context(prompt))
        assert bool(len(drafter.propose(PassState(), 8))) == drafts
    # Read once, it goes on from there, also where a few keys were typed.
    for typed in (prompt, np.append(prompt, [3, 4]).astype(np.int32)):
        drafter.begin(Context(typed))
        assert drafter.plan(ANY_PASS, 8)[0] > 0
    cheap = drafter_over(FakeTarget(hashed_logits(20), 20, eog=frozenset()), CHEAP, own)
    for n_read, drafts in ((3, True), (5, True), (500, False)):
        cheap.begin(Context(prompt[:n_read]))
        assert bool(len(cheap.propose(PassState(), 8))) == drafts


def test_a_plan_is_made_again_only_where_something_is_new(monkeypatch):
    curve = CostCurve({1: 1.0, 2: 1.1, 8: 1.8}, back_ms=0.3)
    drafter = drafter_over(FakeTarget(), curve, CostCurve({1: 0.15, 8: 0.2}))
    drafter.begin(Context(np.zeros(3, np.int32)))
    n_made = 0
    plan = drafter._plan

    def counted(*args):
        nonlocal n_made
        n_made += 1
        return plan(*args)

    monkeypatch.setattr(drafter, "_plan", counted)
    rate = drafter.plan(ANY_PASS, 8)[1]
    assert [drafter.plan(ANY_PASS, 8)[1] for _ in range(9)] == [rate] * 9
    assert n_made == 1
    wide = PassState(after_single=False)  # a wider pass costs less beside one over one token
    assert drafter.plan(wide, 8)[1] > rate
    drafter.plan(wide, 8)
    assert n_made == 2
    draft = Draft.chain([1, 2], DRAFT_MODEL)
    drafter.observe(NO_TOKENS, draft, Verdict((1, 2, 3), (0, 1)))
    assert drafter.plan(ANY_PASS, 8)[1] > rate  # it was right
    assert n_made == 3
    for _ in range(64):  # wider passes take much longer than was thought
        curve.observe(1, 1.0)
        curve.observe(1, 1.0)
        curve.observe(8, 16.0)
    assert drafter.plan(ANY_PASS, 8)[1] < rate
    assert n_made == 4


def test_a_hit_rate_changes_the_depth():
    model = FakeTarget(hashed_logits(20), 20, eog=frozenset())
    curve, own = CostCurve({1: 1.0, 2: 1.3, 9: 3.4}), CostCurve({1: 0.05})
    drafter = drafter_over(model, curve, own, clock=lambda: 0.0)
    drafter.begin(Context(np.array([1], np.int32)))
    start = drafter.plan(ANY_PASS, 8)[0]
    for _ in range(40):
        draft = drafter.propose(PassState(), 8)
        n = len(draft)
        drafter.observe(NO_TOKENS, draft, Verdict((*draft.tokens.tolist(), 7), tuple(range(n))))
    assert drafter.plan(ANY_PASS, 8)[0] > start
    for _ in range(80):
        drafter.observe(NO_TOKENS, drafter.propose(PassState(), 8), Verdict((19,), ()))
    assert drafter.plan(ANY_PASS, 8)[0] == 0


def test_a_model_that_was_wrong_for_long_is_believed_again_where_it_is_right():
    model = FakeTarget(hashed_logits(20), 20, eog=frozenset())
    curve, own = CostCurve({1: 1.0, 2: 1.26, 5: 1.26}), CostCurve({1: 0.03})
    drafter = drafter_over(model, curve, own, clock=lambda: 0.0)
    drafter.begin(Context(np.array([1], np.int32)))
    asked: list[int] = []
    for is_right in (False, True):
        n_asked = 0
        for _ in range(3000):
            draft = drafter.propose(PassState(), 4) if drafter.is_due() else NO_DRAFT
            n_asked += len(draft) > 0
            said = draft.tokens.tolist()[:1] if is_right else [19]
            drafter.observe(NO_TOKENS, draft, Verdict(tuple(said), ()))
        asked.append(n_asked)
        assert (drafter.plan(ANY_PASS, 4)[0] > 0) == is_right
    # It was tried now and then only, and is now asked each time.
    assert asked[0] < 300 < asked[1]


def scripted(*scripts, curve=CHEAP, policy=GuardPolicy.RAISE):
    chain = combined([ScriptedDrafter(s) for s in scripts], 10, 2, curve, policy=policy)
    chain.begin(Context(NO_TOKENS))
    return chain


def test_the_first_with_something_worth_while_wins():
    weak = Draft.chain([1, 2], probs=np.array([0.01, 0.01], np.float32))
    strong = Draft.chain([3, 4], probs=np.array([0.99, 0.99], np.float32))
    chain = scripted(lambda e, n: weak, lambda e, n: strong, curve=DEAR)
    assert len(chain.propose(PassState(), 4)) == 0
    middling = CostCurve({1: 1.0, 2: 1.2, 3: 1.4})
    chain = scripted(lambda e, n: weak, lambda e, n: strong, curve=middling)
    assert chain.propose(PassState(), 4).tokens.tolist() == [3, 4]


def test_a_raising_member_is_left_out_until_the_next_request():
    calls = []

    def bad(emitted, n):
        calls.append(n)
        raise ZeroDivisionError

    chain = scripted(bad, lambda e, n: Draft.chain([5]), policy=GuardPolicy.LEAVE_OUT)
    assert chain.propose(PassState(), 4).tokens.tolist() == [5]
    assert chain.propose(PassState(), 4).tokens.tolist() == [5]
    assert len(calls) == 1
    chain.begin(Context(NO_TOKENS))
    chain.propose(PassState(), 4)
    assert len(calls) == 2


def test_logs_of_a_failure_hold_no_source_text(caplog):
    def bad(emitted, n):
        raise ValueError("password = hunter2")

    scripted(bad, policy=GuardPolicy.LEAVE_OUT).propose(PassState(), 4)
    assert "left out" in caplog.text
    assert "hunter2" not in caplog.text


def test_in_tests_what_a_member_raises_is_raised():
    def bad(emitted, n):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scripted(bad).propose(PassState(), 4)
    with pytest.raises(MalformedError, match="scripted"):
        scripted(lambda e, n: Draft.chain([99])).propose(PassState(), 4)


class Costly(ScriptedDrafter):
    """Costs time to ask, and says what it expects."""

    traits = Traits(takes_time=True)

    def __init__(self, script: Script, rate: float) -> None:
        super().__init__(script)
        self._rate = rate
        self.rests = False

    def is_due(self) -> bool:
        return not self.rests

    def plan(self, state: PassState, n_max: int) -> Plan:
        return Plan(1, self._rate)


def test_a_costly_member_is_asked_where_it_promises_more():
    free = Draft.chain([1, 2], probs=np.array([0.5, 0.5], np.float32))
    dear = Draft.chain([3, 4], DRAFT_MODEL, np.array([0.9, 0.9], np.float32))
    for promised, expected in ((0.1, [1, 2]), (9.0, [3, 4])):
        members = [ScriptedDrafter(lambda e, n: free), Costly(lambda e, n: dear, promised)]
        chain = combined(members, 10, 2, CHEAP)
        chain.begin(Context(NO_TOKENS))
        draft = chain.propose(PassState(), 4)
        assert draft.tokens.tolist() == expected
        # Each learns what became of its own draft.
        chain.observe(np.array([3], np.int32), draft, Verdict((3,), ()))
        assert members[0].observed[0][1] is free
        assert members[1].observed[0][1] is (dear if promised > 1 else draft)


def test_a_sampled_draft_once_drawn_is_verified():
    free = Draft.chain([1, 2], probs=np.array([0.9, 0.9], np.float32))
    q = np.full((1, 10), 0.1, np.float32)
    drawn = Draft.chain([5], DRAFT_MODEL, np.array([0.01], np.float32), q)
    chain = combined(
        [ScriptedDrafter(lambda e, n: free), Costly(lambda e, n: drawn, 9.0)], 10, 2, DEAR
    )
    chain.begin(Context(NO_TOKENS))
    assert chain.propose(PassState(), 4) is drawn
