"""Optional parts of drafting, each of which can be left out by one value.

They cost lines, and a part that brings too little goes. `codespec bench ablation` measures each of
them switched off; nothing else does. Output never depends on them, only speed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """The defaults are the product.

    Lookups:
    suffix, edits, buffers, answers: drafts from the text after the cursor, from lines that were
        replaced, from other open documents, from earlier completions.
    trees:          drafts with branches.
    after_branches: sources are asked again for what follows a tree's branches.
    last_token:     for trees, sources are also asked by the last token alone.
    learning:       P(accepted) follows outcomes: the weights of its tables.
    memory:         what outcomes taught is kept for the workspace's next session.

    Draft models:
    draft_model:   the second, smaller model drafts at all.
    confidence:    its own probability of a token says how likely that is accepted; doubtful
        drafts are dropped.
    dearer_draft:  of several draft models, the dearest that the target's cost allows is asked.
    draft_rests:   one that would draft nothing is not asked for some passes.

    Cost:
    filling:       on a GPU, all passes have one width.
    way_back:      the way back to passes over one token is due once for wide passes in a row.
    refinement:    real passes correct the measured cost curve.
    thread_choice: other numbers of threads are tried.

    Own work:
    worth:         drafters are left alone while asking them costs more than it brings.
    stretches:     passes in a row are made by native code.
    """

    suffix: bool = True
    edits: bool = True
    buffers: bool = True
    answers: bool = True
    trees: bool = True
    after_branches: bool = True
    last_token: bool = True
    learning: bool = True
    memory: bool = True
    draft_model: bool = True
    confidence: bool = True
    dearer_draft: bool = True
    draft_rests: bool = True
    filling: bool = True
    way_back: bool = True
    refinement: bool = True
    thread_choice: bool = True
    worth: bool = True
    stretches: bool = True

    @property
    def sources_left_out(self) -> frozenset[str]:
        """Names of the sources that lookups do without."""
        names = "suffix", "edits", "buffers", "answers"
        return frozenset(name for name in names if not getattr(self, name))


PRODUCT = Mechanisms()
