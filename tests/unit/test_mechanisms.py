"""Each optional part of drafting can be left out: it is gone then, and the output is the same."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.drafters.calibrate import Planners, prior
from codespec.drafters.cost import CostCurve
from codespec.drafters.kinds import token_kinds
from codespec.drafters.learned import source_names
from codespec.drafters.lookup import ANSWERS, BUFFERS, EDITS, LookupDrafter
from codespec.drafters.mechanisms import PRODUCT, Mechanisms
from codespec.engine.completer import Completer
from codespec.engine.output import Limits
from codespec.index.live import LiveDocument
from codespec.native import SuffixAutomaton
from codespec.sampling import Sampler
from codespec.types import ANY_PASS, NO_TOKENS, Context, PassState, SamplingParams, Verdict
from tests.drafters import chain_of, drafter_over

TOKENIZER = ByteTokenizer()
KINDS = token_kinds(TOKENIZER)
NAMES = [field.name for field in fields(Mechanisms)]
CHEAP = {1: 1.0, 33: 1.1}


def without(name: str) -> Mechanisms:
    return replace(PRODUCT, **{name: False})


def document_of(prefix: str, suffix: str = "") -> LiveDocument:
    document = LiveDocument(TOKENIZER)
    document.update(prefix, suffix)
    return document


def lookup_in(document: LiveDocument, chosen: Mechanisms, neighbours=(), **options):
    planners = Planners(KINDS, mechanisms=chosen)
    drafter = LookupDrafter(
        lambda path: document,
        planners.of,
        neighbours=lambda context: neighbours,
        mechanisms=chosen,
        **options,
    )
    drafter.begin(Context(NO_TOKENS, document.left, document.right))
    return drafter, planners.of("")


@pytest.mark.parametrize("name", NAMES)
def test_output_depends_on_none_of_them(name):
    chosen = without(name)

    def run(*members, curve: CostCurve | None = None) -> list[int]:
        target = FakeTarget(hashed_logits(256), n_vocab=256)
        chain = chain_of(members, 256, 4, curve or CostCurve(CHEAP), mechanisms=chosen)
        context = Context(TOKENIZER.encode("abcabcab"), TOKENIZER.encode("abcabcab"))
        return Completer(target, chain).run(context, Sampler(SamplingParams()), Limits(40))[0]

    curve = CostCurve(CHEAP)
    small = FakeTarget(hashed_logits(256), n_vocab=256)
    lookup, _ = lookup_in(document_of("abcabcab"), chosen, curve=curve, max_leaves=4)
    model = drafter_over(small, curve, CostCurve({1: 0.01}), mechanisms=chosen)
    assert run(lookup, model, curve=curve) == run()


@pytest.mark.parametrize(
    ("name", "source"),
    [("edits", EDITS), ("buffers", BUFFERS), ("answers", ANSWERS)],
)
def test_a_source_less(name, source):
    text = SuffixAutomaton()
    text.extend(TOKENIZER.encode("alpha(beta)"))
    document = document_of("alpha(")
    proposed = {}
    for chosen in (PRODUCT, without(name)):
        drafter, _ = lookup_in(document, chosen, [(source, text)], curve=CostCurve(CHEAP))
        proposed[chosen] = len(drafter.propose(PassState(), 4))
    assert proposed == {PRODUCT: 4, without(name): 0}


def test_the_text_after_the_cursor_less():
    document = document_of("alpha(", "\nalpha(beta)\n")
    lengths = [
        len(lookup_in(document, chosen, curve=CostCurve(CHEAP))[0].propose(PassState(), 4))
        for chosen in (PRODUCT, without("suffix"))
    ]
    assert lengths[0] > 0
    assert lengths[1] == 0


def test_chains_in_place_of_trees():
    document = document_of("f(a)\nf(b)\nf(")
    is_chain = [
        lookup_in(document, chosen, curve=CostCurve(CHEAP), max_leaves=8)[0]
        .propose(ANY_PASS, 16)
        .is_chain
        for chosen in (PRODUCT, without("trees"))
    ]
    assert is_chain == [False, True]


def test_what_outcomes_do_not_teach():
    changed = {}
    names = source_names()
    for name in ("learning", "worth"):
        drafter, planner = lookup_in(document_of("abcabcab"), without(name), curve=CostCurve(CHEAP))
        draft = drafter.propose(PassState(), 4)
        drafter.observe(draft.tokens[:1], draft, Verdict((5,), ()))
        drafter.propose(PassState(draft.tokens[:1]), 4)
        changed[name] = not np.array_equal(planner.state(), prior().state(names))
    assert changed == {"learning": False, "worth": True}


def test_no_memory_of_earlier_sessions(tmp_path):
    for name, is_kept in (("memory", False), ("worth", True)):
        folder = tmp_path / name
        folder.mkdir()
        planners = Planners(KINDS, "", folder, mechanisms=without(name))
        planners.of("/w")
        planners.save()
        assert any(folder.iterdir()) == is_kept


def test_the_way_back_as_part_of_every_wide_pass():
    for chosen, is_single in ((PRODUCT, False), (without("way_back"), True)):
        chain = chain_of([], 256, mechanisms=chosen)
        chain.begin(Context(NO_TOKENS))
        assert chain.state(NO_TOKENS, 1, False).after_single == is_single


def test_a_draft_model_without_rests():
    small = FakeTarget(hashed_logits(256), n_vocab=256)
    steep, dear = CostCurve({1: 1.0, 2: 9.0, 3: 18.0}), CostCurve({1: 5.0})
    for name, n_rest in (("draft_rests", 0), ("worth", 16)):
        drafter = drafter_over(small, steep, dear, mechanisms=without(name))
        drafter.begin(Context(TOKENIZER.encode("ab")))
        drafter.propose(PassState(), 4)
        assert drafter.n_rest() == n_rest
