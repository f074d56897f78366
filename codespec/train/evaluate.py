"""How good a model is, on packages it never saw: bits per byte, fill-in-the-middle of a line,
agreement of a pair.

Bits per byte compares models of different tokenizers; the exact match of a whole line is what a
user sees; the share of equal greedy tokens bounds how much of a draft model's proposals the target
accepts.
"""

from __future__ import annotations

import difflib
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from codespec.errors import InputError
from codespec.train import bpe
from codespec.train.corpus import HELD_OUT, Corpus
from codespec.train.fim_cuts import Fim
from codespec.training import qwen2
from codespec.training.line_cuts import line_bounds
from codespec.training.network import Llama

N_CONTEXT = 1024  # tokens a chunk of running text
N_PREFIX, N_SUFFIX = 768, 192  # tokens of a FIM prompt at most
MAX_LINE_TOKENS = 64
MIN_MIDDLE = 4  # characters: shorter middles are mostly closing brackets

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class LineResult:
    """Fill-in-the-middle of single lines in one order."""

    n: int
    exact_match: float
    edit_similarity: float
    stopped_itself: float


def held_out_texts(corpus: Corpus, limit: int) -> list[str]:
    """Texts of at most limit held-out Python files, a fixed random choice.

    Raises: InputError where there are none.
    """
    documents = [int(d) for d in corpus.documents("heldout") if corpus.language(int(d)) == "python"]
    if not documents:
        raise InputError(
            f"{corpus.folder} has nothing to measure models on: no Python package is held out",
            "Build it anew with --env of an environment that has one of: "
            f"{', '.join(sorted(HELD_OUT))}.",
        )
    random.Random(0).shuffle(documents)
    return [corpus.text(d) for d in documents[:limit]]


def chunks(tokenizer: Tokenizer, texts: list[str], n_ctx: int) -> Iterator[Tensor]:
    """Token ids, (at most N_CONTEXT + 1,), that cover the texts; the first of each is context only.

    An end token precedes each text.
    """
    plain, end = bpe.as_text(tokenizer), bpe.token_id(tokenizer, qwen2.END)
    step = min(N_CONTEXT, n_ctx)
    for text in texts:
        ids = torch.tensor([end, *plain.encode(text).ids])
        for start in range(0, len(ids) - 1, step):
            yield ids[start : start + step + 1]


@torch.no_grad()
def bits_per_byte(
    model: Llama, tokenizer: Tokenizer, texts: list[str], tick: Tick = lambda: None
) -> float:
    """Mean cost of held-out text in bits a byte, in chunks of N_CONTEXT tokens without overlap;
    float32 arithmetic.
    """
    nats = 0.0
    for ids in chunks(tokenizer, texts, model.config.n_ctx):
        ids = ids.to(model.device)
        nats += F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="sum").item()
        tick()
    return nats / math.log(2) / sum(len(text.encode()) for text in texts)


@torch.no_grad()
def greedy_agreement(
    target: Llama,
    draft: Llama,
    tokenizer: Tokenizer,
    texts: list[str],
    tick: Tick = lambda: None,
) -> float:
    """Share of positions of running text where draft and target (of one tokenizer) put the same
    token first.
    """
    same, total = 0, 0
    for ids in chunks(tokenizer, texts, min(target.config.n_ctx, draft.config.n_ctx)):
        context = ids[None, :-1]
        same += int((target(context).argmax(-1) == draft(context).argmax(-1)).sum())
        total += context.size(1)
        tick()
    return same / total


@torch.no_grad()
def greedy(
    model: Llama, prompt: list[int], stop: Callable[[list[int]], bool], max_tokens: int
) -> list[int]:
    """Greedy continuation until stop(emitted) or max_tokens."""
    caches = model.new_caches()
    step = torch.tensor([prompt], device=model.device)
    emitted: list[int] = []
    while len(emitted) < max_tokens and not (emitted and stop(emitted)):
        states = model.hidden(step, caches)[:, -1]
        emitted.append(int((states @ model.embedding.weight.T).argmax()))
        step = torch.tensor([emitted[-1:]], device=model.device)
    return emitted


def line_cases(texts: list[str], n: int) -> list[tuple[str, str, str]]:
    """n cases (prefix, middle, suffix): from inside a line of code to its end.

    The middle has at least MIN_MIDDLE characters and begins where a piece of the pre-tokenizer
    does, because that is where serving begins: it takes a token begun before the cursor back.
    """
    rng = random.Random(0)
    cases: list[tuple[str, str, str]] = []
    while len(cases) < n:
        text = rng.choice(texts)
        first, end = line_bounds(text, rng.randrange(len(text)))
        line = text[first:end]
        pieces = qwen2.PIECES.pre_tokenize_str(line)
        starts = [
            at for piece, (at, _) in pieces if piece.strip() and end - first - at >= MIN_MIDDLE
        ]
        if starts and not line.lstrip().startswith(("#", '"', "'")):
            start = first + rng.choice(starts)
            cases.append((text[:start], text[start:end], text[end:]))
    return cases


def line_completion(
    model: Llama,
    tokenizer: Tokenizer,
    cases: list[tuple[str, str, str]],
    *,
    psm: bool,
    tick: Tick = lambda: None,
) -> LineResult:
    """Greedy completion of every case, cut at its first newline. Cost: about 0.1 s a case at 9 M
    parameters.
    """
    fim = Fim(tokenizer)
    n_prefix, n_suffix = N_PREFIX, N_SUFFIX
    if model.config.n_ctx < N_CONTEXT + MAX_LINE_TOKENS:
        n_prefix, n_suffix = model.config.n_ctx // 2, model.config.n_ctx // 8
    exact = stopped = 0
    similarity = 0.0
    for prefix, middle, suffix in cases:
        line = line_bounds(prefix, len(prefix))[0]
        prompt = fim.prompt(
            fim.encode(prefix[:line])[-n_prefix:],
            fim.encode(suffix)[:n_suffix],
            psm=psm,
            begun=fim.encode(prefix[line:]),
        )

        def is_done(emitted: list[int]) -> bool:
            return emitted[-1] == fim.end or "\n" in tokenizer.decode(emitted[-1:])

        room = min(MAX_LINE_TOKENS, model.config.n_ctx - len(prompt))
        emitted = greedy(model, prompt, is_done, room)
        text = tokenizer.decode(emitted).split("\n")[0].rstrip()
        exact += text == middle.rstrip()
        stopped += emitted[-1] == fim.end
        similarity += difflib.SequenceMatcher(None, text, middle.rstrip(), autojunk=False).ratio()
        tick()
    return LineResult(len(cases), exact / len(cases), similarity / len(cases), stopped / len(cases))
