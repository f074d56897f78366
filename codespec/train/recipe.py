"""Recipes of training runs: phases, batches and rates, and the two of the models that ship."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from codespec.train.fim_cuts import FINISHED_RATE
from codespec.training.network import ModelConfig
from codespec.training.optim import SMALL_MATRIX_LR, SMALL_OTHER_LR


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the budget with one mixture and batch shape.

    until: progress, 0 to 1, at which the phase ends. fim_rate: share of fill-in-the-middle
    sequences. context_weight: what a token outside a middle counts, one inside counting 1.
    end_weight: what the end token of a middle counts. repository_rate: share of rows that begin
    with text of other files of a package. finished_rate: share of the middles that are cut where a
    line is finished.
    """

    until: float
    n_tokens: int
    n_rows: int
    n_micro_rows: int
    fim_rate: float = 0.5
    context_weight: float = 1.0
    end_weight: float = 1.0
    repository_rate: float = 0.0
    finished_rate: float = FINISHED_RATE

    def __post_init__(self) -> None:
        if self.n_rows % self.n_micro_rows:
            raise ValueError(
                f"n_rows {self.n_rows} is not a multiple of n_micro_rows {self.n_micro_rows}"
            )


@dataclass(frozen=True, slots=True)
class Recipe:
    """Model, batch shapes, learning rates. The schedule is warmup, stable, linear decay to zero (Hu
    et al. 2024). n_streams: of batches, which processes make ahead where the device is no CPU.
    teacher: the recipe whose finished model's next-token distribution is learned, not the text's
    own tokens.
    """

    name: str
    model: ModelConfig
    phases: tuple[Phase, ...]
    matrix_lr: float = 0.02
    other_lr: float = 3e-3
    warmup_steps: int = 60
    decay_from: float = 0.45
    momentum_warmup_steps: int = 300
    seed: int = 0
    n_streams: int = 1
    teacher: str = ""

    def __post_init__(self) -> None:
        ends = [phase.until for phase in self.phases]
        if not ends or ends != sorted(ends) or ends[-1] != 1.0:
            raise ValueError("phases must end in rising order, the last at 1.0")
        if any(phase.n_tokens > self.model.n_ctx for phase in self.phases):
            raise ValueError("a phase has longer rows than the model's context")

    def phase_at(self, progress: float) -> int:
        return next(
            (i for i, p in enumerate(self.phases) if progress < p.until), len(self.phases) - 1
        )

    def lr_scale(self, step: int, progress: float) -> float:
        """Factor on both learning rates, 0 to 1. Decay takes over half of a short budget: it pays
        there.
        """
        warmup = min(1.0, (step + 1) / self.warmup_steps)
        decay = min(1.0, (1.0 - progress) / (1.0 - self.decay_from))
        return max(0.0, warmup * decay)

    def momentum(self, step: int) -> float:
        return min(0.95, 0.85 + 0.10 * step / self.momentum_warmup_steps)


# Short rows first: they are cheap and teach syntax. Small batches at the very start: more steps
# while the gradient is strong. Then whole contexts, some with text of other files, so that
# positions up to n_ctx work: served prompts reach 1,500 tokens. The last third is about middles,
# and about their ends above all. A sequence has one end token, and one place where a
# prefix-suffix-middle prompt goes on with a text far before it, so in long rows of even weights a
# small model sees too few of both: after 15 M tokens of such rows the end token had a probability
# of 0.10 where a middle ends, 0.01 where that is inside a line, and the first token after a
# prefix-suffix-middle prompt was right at 4 % of the places (11 % where the prompt goes on with
# the cursor's line, 18 % in suffix-prefix-middle order). Hence short rows there, end tokens that
# count twice until the last phase, and the served form of the prompt.
PHASES = (
    Phase(0.12, 512, 8, 2),
    Phase(0.55, 512, 16, 4),
    Phase(0.68, 2048, 4, 1, repository_rate=0.3),
    Phase(0.95, 256, 32, 8, fim_rate=0.9, context_weight=0.3, end_weight=2.0),
    Phase(1.0, 1024, 8, 2, 0.8, context_weight=0.3, repository_rate=0.3),
)

TARGET = Recipe(
    "codespec-base",
    ModelConfig(n_embd=320, n_layers=6, n_heads=4, n_kv_heads=2, head_dim=64, n_ff=896),
    PHASES,
)
DRAFT = Recipe(
    "codespec-draft",
    ModelConfig(n_embd=96, n_layers=2, n_heads=2, n_kv_heads=1, head_dim=32, n_ff=288),
    PHASES,
    matrix_lr=SMALL_MATRIX_LR,
    other_lr=SMALL_OTHER_LR,
)
RECIPES = {recipe.name: recipe for recipe in (TARGET, DRAFT)}

# For half an hour of a large GPU: as large as 20 MiB and 3 MiB in q8_0 allow, batches of 64,000
# tokens, and most of the budget in long rows, which a GPU does not mind. Processes make the rows.
#
# The shapes are chosen for two CPU cores, where a prompt that is new costs most. One thread, random
# weights, milliseconds for a prompt of 1,280 tokens, a pass of one token after it, of four:
#
#   width x layers     M      prompt  one   four
#   320 x 6 (above)    9.3       379  1.4    3.4
#   320 x 14          17.7       990  3.0    6.0
#   384 x 9           18.0       824  2.5    6.0
#   448 x 7           18.3       764  2.2    5.1
#   512 x 5           17.6       644  2.1    6.5
#   96 x 2 (above)     1.0        35  0.28   0.29
#   160 x 3            2.1        73  0.29   0.50
#   192 x 2            2.3        52  0.24   0.44
#   128 x 5            2.0       113  0.39   0.67
#
# Fewer layers are quicker at one size, and small models gain from depth (Liu et al. 2024,
# MobileLLM): seven is the middle. One head of keys and values halves the cache.
LARGE_PHASES = (
    Phase(0.05, 512, 64, 64),
    Phase(0.35, 512, 128, 64),
    Phase(0.70, 2048, 32, 16, fim_rate=0.6, repository_rate=0.25),
    Phase(0.85, 512, 128, 64, fim_rate=0.9, context_weight=0.4, end_weight=2.0),
    Phase(1.0, 2048, 32, 16, 0.9, context_weight=0.4, repository_rate=0.25),
)
LARGE_TARGET = replace(
    TARGET,
    model=ModelConfig(n_embd=448, n_layers=7, n_heads=7, n_kv_heads=1, head_dim=64, n_ff=1216),
    phases=LARGE_PHASES,
    warmup_steps=200,
    n_streams=16,
)
LARGE_DRAFT = replace(
    DRAFT,
    model=ModelConfig(n_embd=192, n_layers=2, n_heads=2, n_kv_heads=1, head_dim=64, n_ff=512),
    phases=LARGE_PHASES,
    warmup_steps=200,
    n_streams=16,
    teacher=TARGET.name,
)
LARGE_RECIPES = {recipe.name: recipe for recipe in (LARGE_TARGET, LARGE_DRAFT)}

# Going on with a finished model: a warmup to half of the rates, long enough there, then the decay
# again. First rows of even weights: most is gained in plain text. Then what it lacks after a short
# budget: to go on where the text before the cursor ends, in prefix-suffix-middle order, and to stop
# at the end of a middle. Both are learned once a sequence, so short rows; whole contexts last.
FURTHER_PHASES = (
    Phase(0.45, 512, 16, 4, fim_rate=0.6),
    Phase(0.80, 320, 16, 4, fim_rate=0.8, context_weight=0.5, end_weight=2.0),
    Phase(1.0, 1024, 6, 2, 0.8, context_weight=0.5, repository_rate=0.3),
)
LARGE_FURTHER_PHASES = (
    Phase(0.30, 2048, 32, 16, fim_rate=0.6, repository_rate=0.25),
    Phase(0.65, 512, 128, 64, fim_rate=0.8, context_weight=0.5, end_weight=2.0),
    Phase(1.0, 2048, 32, 16, 0.8, context_weight=0.5, repository_rate=0.25),
)
FURTHER_RATE = 0.5  # of the recipe's


def further(recipe: Recipe, start: Path, device: str = "cpu", rate: float = FURTHER_RATE) -> Recipe:
    """The recipe of going on from the weights of a run, whose optimisers are gone. Other weights
    see the corpus in another order. An accelerator gets batches of 64,000 tokens. rate: of the
    recipe's learning rates.
    """
    return replace(
        recipe,
        phases=FURTHER_PHASES if device == "cpu" else LARGE_FURTHER_PHASES,
        matrix_lr=recipe.matrix_lr * rate,
        other_lr=recipe.other_lr * rate,
        warmup_steps=20,
        decay_from=0.2,
        seed=zlib.crc32(start.read_bytes()),
    )
