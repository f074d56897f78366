"""`codespec bench replay`: how fast would the edits of a Git history have been decoded?

The target is the true text, so no model is needed and every drafter is asked the same questions;
a pass over k drafted tokens costs T(k + 1) on a given curve. Loop and drafters are the
product's own: only the model is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from codespec.backends.base import Target
from codespec.backends.fake import FakeTarget
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.documents.live import LiveDocument
from codespec.documents.recent_edits import Lost, remember
from codespec.documents.sources import BUFFERS, EDITS, Neighbour
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.planner_weights import PlannerWeights
from codespec.drafters.planners import Planners
from codespec.drafters.token_kinds import token_kinds
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.native import SuffixAutomaton
from codespec.syntax.text import encode, safe_cuts
from codespec.types import (
    NO_TOKENS,
    Context,
    Draft,
    Logits,
    SamplingParams,
    Tokenizer,
    Tokens,
    Trace,
)
from codespec.verify.sampling import Sampler

from .acceptance import by_position, by_source
from .calibration import Calibration, Watched
from .history import Commit, History, Hunk
from .reference import (
    Fixed,
    Ideal,
    PromptLookup,
    Sources,
    SuffixTrie,
    SuffixTrieTree,
)
from .replay_draft import ReplayDraftModel
from .replay_trees import CommitTrees, Tree
from .writers import People, TextWriter

MIN_TOKENS, MAX_TOKENS = 16, 400


class TextTarget(FakeTarget):
    """A target that says a given text. Row i follows draft node i - 1 and is read only when the
    node's whole path was right, so its depth says which token comes."""

    def __init__(self, n_vocab: int, max_draft: int, *, rolls_back: bool = True) -> None:
        super().__init__(
            n_vocab=n_vocab,
            n_ctx=1 << 22,
            max_draft=max_draft,
            eog=frozenset(),
            rolls_back=rolls_back,
        )
        self.truth = NO_TOKENS
        self._n_said = self._n_read = self._n_drafted = 0

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        self._n_said = self._n_read = 0
        self._n_prompt = len(tokens)
        return 0

    @property
    def n_cached(self) -> int:
        return self._n_prompt - 1 + self._n_read

    def decode(self, tokens: Tokens, draft: Draft) -> TextRows:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._n_drafted = len(draft)
        return TextRows(self.truth, draft, self._n_said)

    def keep(self, path: Sequence[int]) -> None:
        self._n_said += len(path) + 1
        if len(path) == self._n_drafted or self.can.rolls_back:
            self._n_read = self._n_said


class TextRows:
    """`LogitsRows` of a pass over a draft behind so many tokens of the text."""

    def __init__(self, truth: Tokens, draft: Draft, n_said: int) -> None:
        depths = np.zeros(len(draft) + 1, np.int64)
        for i, parent in enumerate(draft.parents.tolist()):
            depths[i + 1] = depths[parent + 1] + 1
        self._truth = truth
        self._positions = depths + n_said

    def argmax(self, i: int) -> int:
        # Behind the end nothing is right, and nothing is kept.
        at = self._positions[i]
        return int(self._truth[at]) if at < len(self._truth) else -1

    def row(self, i: int) -> Logits:
        raise NotImplementedError("the true text has no logits")


class ForcedTarget(Target):
    """`Target` whose passes are another's, and whose words are `truth`."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.info, self.can = target.info, target.can
        self.truth = NO_TOKENS
        self._n_said = 0

    @property
    def n_cached(self) -> int:
        return self._target.n_cached

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        self._n_said = 0
        return self._target.prefill(tokens, cancelled)

    def decode(self, tokens: Tokens, draft: Draft) -> TextRows:
        rows = self._target.decode(tokens, draft)
        rows.argmax(0)  # what the loop would look at, and by then the pass is over
        return TextRows(self.truth, draft, self._n_said)

    def keep(self, path: Sequence[int]) -> None:
        self._target.keep(path)
        self._n_said += len(path) + 1


def cost_of(widths: Sequence[int], curve: CostCurve) -> float:
    """Milliseconds of passes over so many tokens, one after the other, behind a prompt."""
    total, before, n_alike = 0.0, 0, 0
    for n in widths:
        n_alike = n_alike + 1 if n == before else 0
        total += curve.settled_ms(n, n_alike)
        before = n
    return total


@dataclass
class Result:
    """One configuration on one curve, summed over all hunks or windows. curve: its name, where
    there are several. cost: milliseconds."""

    config: str
    curve: str = ""
    n_tokens: int = 0
    n_passes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    cost: float = 0.0
    draft_s: float = 0.0
    traces: list[Trace] = field(default_factory=list[Trace])

    def add(self, trace: Trace, cost: float) -> None:
        self.n_tokens += trace.n_tokens
        self.n_passes += trace.n_target_passes
        self.n_drafted += trace.n_drafted
        self.n_accepted += trace.n_accepted
        self.cost += cost
        self.draft_s += trace.draft_ms / 1e3
        self.traces.append(trace)


CONFIGS = (
    "plain",
    "prompt-lookup",
    "fixed",
    "suffix-trie",
    "suffix-trie-tree",
    "codespec",
    "codespec-edits",
    "ideal",
)
WITH_DRAFT = "codespec-draft"
"""Lookups and a draft model."""
MAX_LEAVES = 8
"""Leaves that llama.cpp's contexts take; trees of the reference have as many as they like."""
MAX_TREE = 64


def usable(commit: Commit, tokenizer: Tokenizer) -> Iterator[Hunk]:
    """The hunks that are neither too short nor too long to be replayed."""
    for hunk in commit.hunks:
        if MIN_TOKENS <= len(tokenizer.encode(hunk.text)) <= MAX_TOKENS:
            yield hunk


class ReplaySession:
    """The contents of a user's session besides the tree: lines that were replaced, and lines that
    were written, in the order of the hunks of one commit."""

    def __init__(self) -> None:
        self._edits = SuffixAutomaton()
        self._buffers = SuffixAutomaton()

    def replace(self, left: Tokens, removed: Tokens) -> None:
        """The lines after `left` go: the next hunk stands in their place."""
        if len(removed):
            remember(self._edits, Lost(left, removed))

    def write(self, text: Tokens) -> None:
        self._buffers.extend(text)
        self._buffers.extend_break()

    @property
    def neighbours(self) -> Sequence[Neighbour]:
        return [(EDITS, self._edits), (BUFFERS, self._buffers)]


class Replay:
    """Replays the last commits of a history under every configuration, and one more with a draft
    model of the same tokenizer and curve, where one is given.
    """

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        curve: CostCurve,
        glob: str = "*.py",
        width: int = 16,
        draft: ReplayDraftModel | None = None,
        max_leaves: int = MAX_LEAVES,
        writer: TextWriter | None = None,
        start: PlannerWeights | None = None,
    ) -> None:
        self._history = History(root, glob)
        self._writer = writer or People(tokenizer)
        self._tokenizer = tokenizer
        self._cuts = safe_cuts(tokenizer)
        self._curve = curve
        self._width = width
        self._trees = CommitTrees(self._history, tokenizer)
        self._target = TextTarget(tokenizer.n_vocab, 64, rolls_back=curve.rolls_back)
        self._max_leaves = max_leaves if curve.rolls_back else 1
        kinds = token_kinds(tokenizer)
        self._draft = draft
        configs = CONFIGS if draft is None else (*CONFIGS, WITH_DRAFT)
        # Each configuration learns from its own drafts, from the shipped prior on.
        ours = "codespec", "codespec-edits", WITH_DRAFT
        self._planners = {name: Planners(kinds, start=start) for name in configs if name in ours}
        self.calibrations = {name: Calibration() for name in self._planners}
        self._session = ReplaySession()
        self._document = LiveDocument(tokenizer, self._cuts)
        self.results = {name: Result(name) for name in configs}
        self.n_hunks = 0

    def run(
        self,
        n_commits: int,
        progress: Callable[[int, int], None] = lambda i, n: None,
        until: str = "HEAD",
    ) -> None:
        for commit in self._history.each(n_commits, until, progress):
            self._session = ReplaySession()
            for hunk in usable(commit, self._tokenizer):
                self._document.update(hunk.prefix, hunk.suffix)
                removed = encode(hunk.removed, self._tokenizer, self._cuts)
                self._session.replace(self._document.left, removed)
                context, truth = self._writer.write(hunk, self._document)
                if len(truth):
                    self._replay(context, truth, self._trees.of(commit, hunk.path))
                    self.n_hunks += 1
                self._session.write(self._tokenizer.encode(hunk.text))

    def _replay(self, context: Context, truth: Tokens, tree: Tree) -> None:
        self._target.truth = truth
        for name, result in self.results.items():
            drafter = self._drafter(name, truth, tree)
            is_ideal = name == "ideal"
            knows_end = is_ideal or self._writer.tells_end
            n_most = len(truth) if knows_end else len(truth) + MAX_TOKENS
            limits = OutputLimits(n_most, max_width=24 if is_ideal else self._width)

            def ends(emitted: list[int], knows_end: bool = knows_end) -> bool:
                return not knows_end and len(emitted) == len(truth)

            trace = Trace()
            sampler = Sampler(SamplingParams())
            draft = self._draft_of(name)
            if draft is not None:
                draft.begin(context)
            emitted, _ = Completer(self._target, drafter, time.perf_counter).run(
                context, sampler, limits, ends, trace=trace
            )
            assert emitted == truth.tolist(), "verification emitted something else"
            result.add(trace, cost_of(trace.pass_width, self._curve))
            if draft is not None:
                result.cost += draft.spent_ms

    def _drafter(self, name: str, truth: Tokens, tree: Tree) -> CombinedDrafter:
        n_vocab = self._tokenizer.n_vocab
        reference: dict[str, Callable[[], Drafter]] = {
            "prompt-lookup": lambda: PromptLookup(Sources(tree.trie)),
            "fixed": lambda: Fixed(Sources(tree.trie)),
            "suffix-trie": lambda: SuffixTrie(Sources(tree.trie)),
            "suffix-trie-tree": lambda: SuffixTrieTree(Sources(tree.trie)),
            "ideal": lambda: Ideal(Sources(tree.trie), lambda: truth),
        }
        if name == "plain":
            return CombinedDrafter([], n_vocab)
        if name in reference:
            # References choose their own widths.
            return CombinedDrafter(
                [reference[name]()], n_vocab, MAX_TREE, FLAT, policy=GuardPolicy.RAISE
            )
        session = self._session if name == "codespec-edits" else None
        lookup = Watched(
            lambda path: self._document,
            self._planners[name].of,
            lambda workspace: tree,
            lambda context: session.neighbours if session else (),
            boundary=self._writer.boundary,
            curve=self._curve,
            max_leaves=self._max_leaves,
        )
        lookup.calibration = self.calibrations[name]
        members: list[Drafter] = [lookup]
        if (draft := self._draft_of(name)) is not None:
            members.append(draft.drafter)
        return CombinedDrafter(
            members,
            n_vocab,
            self._max_leaves,
            self._curve,
            pads=True,
            policy=GuardPolicy.RAISE,
        )

    def _draft_of(self, config: str) -> ReplayDraftModel | None:
        return self._draft if config == WITH_DRAFT else None

    def _index(self) -> dict[str, object]:
        """Its size, tokens included."""
        n_tokens = self._trees.n_tokens
        return {"bytes_per_token": self._trees.n_bytes / n_tokens} if n_tokens else {}

    def rows(self) -> list[dict[str, object]]:
        """One line per configuration, as the benchmark reports it."""
        plain, ideal = self.results["plain"], self.results["ideal"]
        out: list[dict[str, object]] = []
        for result in self.results.values():
            speedup = plain.cost / result.cost
            calibration = self.calibrations.get(result.config)
            draft = self._draft_of(result.config)
            out.append(
                {
                    "config": result.config,
                    "n_tokens": result.n_tokens,
                    "mat": result.n_tokens / result.n_passes,
                    "drafted_per_pass": result.n_drafted / result.n_passes,
                    "n_drafted": result.n_drafted,
                    "accepted": result.n_accepted,
                    "speedup": speedup,
                    "share_of_ideal": speedup / (plain.cost / ideal.cost),
                    "draft_us_per_pass": 1e6 * result.draft_s / result.n_passes,
                    "by_source": by_source(result.traces),
                    "by_position": by_position(result.traces),
                    **(self._index() if calibration else {}),
                    **(calibration.report() if calibration else {}),
                    **({"draft_model": draft.name} if draft else {}),
                }
            )
        return out
