"""`codespec bench index`: the workspace index in figures, beside its best public peer.

Build times are CPU time of the one thread that works, so that a busy machine does not count. A
lookup is a whole draft of 16 tokens with counts, called from Python, for contexts of 64 tokens from
files that the index has not seen. "Cold" is after 256 MB of other memory were touched; "first" are
the lookups after opening, which compare what they read with its checksums.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from codespec.backends.registry import open_vocabulary, target_of
from codespec.config import Settings
from codespec.index.parsers import Parsers
from codespec.index.word_encoder import WordEncoder
from codespec.native import Segment, SuffixAutomaton, build_segment
from codespec.system.processes import default_threads
from codespec.types import Tokens

from .corpus import IndexedCorpus, read_corpus, renamed, source_files
from .index_files import measure_edits, measure_sources
from .machine import peak_bytes
from .peer import PeerTree, TriePeer, load_peer

DRAFT = 16
CONTEXT = 64
MAX_TOKENS = 25_000_000
PEER_TOKENS = 500_000
N_LOOKUPS = 20_000
N_COLD = 300
N_COLD_SMALL = 20  # in a corpus that caches hold anyway
ACCEPTANCE_TOKENS = 100_000
ACCEPTANCE_DOC_TOKENS = 2000  # of each file: files differ more than places in them

Starts = npt.NDArray[np.int64]
Ask = Callable[[Tokens], Sequence[int] | Tokens]
Result = dict[str, Any]

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds."""

    p50: float
    p99: float


def run(folder: Path | None, settings: Settings, extension: Path | None, scale: int) -> Result:
    """All figures. folder: None for the machine's own Python sources. scale: tokens of the scale
    test, 0 for none.

    Raises: InputError for a corpus too small; ModelError.
    """
    peer = load_peer(extension)
    files = source_files(folder)
    model = open_vocabulary(target_of(settings.model))
    tokenizer, n_threads = model.tokenizer, default_threads()
    with _bar("indexing files", None) as show, Parsers(n_threads) as parsers:
        result = measure_sources(files, tokenizer, parsers, settings, show)
    with _bar("tokenising", MAX_TOKENS) as show:
        corpus = read_corpus(files, WordEncoder(tokenizer), n_threads, MAX_TOKENS, show)
    contexts = sample_contexts(corpus.held_out, N_LOOKUPS)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "segment"
        with console.status("building and asking segments"):
            result |= measure_segment(path, corpus.tokens, corpus.starts, contexts)
            # As many bits an id as a vocabulary of 100,000 to 250,000 takes.
            factor = np.int32(max(1, 140_000 // (int(corpus.tokens.max()) + 1)))
            build_segment(path, corpus.tokens * factor, corpus.starts)
            wide = Segment.open(path)
            result |= {
                "token_bits_wide": wide.token_bits,
                "bytes_per_token_wide": wide.n_bytes / wide.n_tokens,
            }
            result |= measure_edits(tokenizer, corpus.longest)
        with console.status("drafting held-out files, ours and with exact counts"):
            n = min(PEER_TOKENS, len(corpus.tokens))
            result["side_by_side"] = side_by_side(path, corpus, contexts, n, peer)
        if scale:
            with console.status(f"building and asking {scale / 1e6:.0f} M tokens"):
                tokens, starts = renamed(corpus, scale)
                result["scale"] = measure_segment(path, tokens, starts, contexts)
    result["peak_gib"] = peak_bytes() / 2**30
    model.close()
    return result


def measure_segment(path: Path, tokens: Tokens, starts: Starts, contexts: list[Tokens]) -> Result:
    """Build, open and ask one segment of all tokens."""
    begin = time.process_time()
    build_segment(path, tokens, starts)
    seconds = time.process_time() - begin
    opens: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        segment = Segment.open(path)
        opens.append((time.perf_counter() - begin) * 1e3)
    segment = Segment.open(path)
    first = latency(lambda c: segment.draft(c, DRAFT), contexts, warm_up=False)
    begin = time.perf_counter()
    while segment.check_some(1 << 10):
        pass
    check_ms = (time.perf_counter() - begin) * 1e3
    dead = np.zeros(segment.n_docs, np.bool_)
    dead[::10] = True
    n_cold = N_COLD if len(tokens) > 1_000_000 else N_COLD_SMALL
    warm = latency(lambda c: segment.draft(c, DRAFT), contexts)
    half_dead = latency(lambda c: segment.draft(c, DRAFT, dead=dead), contexts)
    cold = latency(lambda c: segment.draft(c, DRAFT), contexts[:n_cold], evict=True)
    return {
        "n_tokens": segment.n_tokens,
        "n_docs": segment.n_docs,
        "token_bits": segment.token_bits,
        "bytes_per_token": segment.n_bytes / segment.n_tokens,
        "build_mtok_per_s": segment.n_tokens / seconds / 1e6,
        "open_ms": max(opens),
        "lookup_first_us_p50": first.p50,
        "lookup_first_us_p99": first.p99,
        "check_ms": check_ms,
        "lookup_us_p50": warm.p50,
        "lookup_us_p99": warm.p99,
        "lookup_dead_us_p50": half_dead.p50,
        "lookup_dead_us_p99": half_dead.p99,
        "lookup_cold_us_p50": cold.p50,
        "lookup_cold_us_p99": cold.p99,
    }


def latency(
    ask: Callable[[Tokens], object],
    contexts: list[Tokens],
    evict: bool = False,
    warm_up: bool = True,
) -> Latency:
    other = np.zeros(256 << 20 if evict else 0, np.uint8)
    for context in contexts[: 1000 if warm_up else 0]:
        ask(context)
    taken: list[int] = []
    for context in contexts:
        other += 1
        begin = time.perf_counter_ns()
        ask(context)
        taken.append(time.perf_counter_ns() - begin)
    p50, p99 = np.percentile(taken, [50, 99]) / 1e3
    return Latency(float(p50), float(p99))


def side_by_side(
    path: Path, corpus: IndexedCorpus, contexts: list[Tokens], n_tokens: int, peer: TriePeer | None
) -> Result:
    """The same first tokens in each structure: our segment, our automaton and the peer's trie,
    which both count exactly. accepted: tokens of a draft of 16 that were right, on average over
    the passes that write the held-out files."""
    tokens, starts = corpus.head(n_tokens)
    docs = [np.ascontiguousarray(d) for d in np.split(tokens, starts[1:])]

    def row(seconds: float, n_bytes: int, ask: Ask) -> Result:
        timing = latency(ask, contexts)
        return {
            "bytes_per_token": n_bytes / n_tokens,
            "build_mtok_per_s": n_tokens / seconds / 1e6,
            "lookup_us_p50": timing.p50,
            "lookup_us_p99": timing.p99,
            "accepted": accepted(ask, corpus.held_out),
        }

    rows: Result = {"n_tokens": n_tokens}
    begin = time.process_time()
    build_segment(path, tokens, starts)
    seconds = time.process_time() - begin
    segment = Segment.open(path)
    while segment.check_some(1 << 10):
        pass
    rows["segment"] = row(seconds, segment.n_bytes, lambda c: segment.draft(c, DRAFT).tokens)

    automaton = SuffixAutomaton()
    begin = time.process_time()
    for doc in docs:
        automaton.extend(doc)
        automaton.extend_break()
    seconds = time.process_time() - begin
    rows["automaton"] = row(seconds, automaton.n_bytes, lambda c: automaton.draft(c, DRAFT).tokens)

    rows["peer"] = None
    if peer is not None:
        tree: PeerTree = peer.tree()
        begin = time.process_time()
        for i, doc in enumerate(docs):
            tree.extend_ndarray(i, doc)
        seconds = time.process_time() - begin
        rows["peer"] = row(seconds, tree.estimate_memory(), lambda c: peer.draft(tree, c, DRAFT))
    return rows


def accepted(ask: Ask, docs: Sequence[Tokens]) -> float:
    """Mean number of drafted tokens that the true text follows; each pass adds one of its own."""
    n_passes = n_accepted = n_tokens = 0
    for whole in docs:
        doc = whole[:ACCEPTANCE_DOC_TOKENS]
        at = 1
        while at < len(doc):
            draft = np.asarray(ask(doc[max(0, at - CONTEXT) : at]), np.int32)
            truth = doc[at : at + len(draft)]
            wrong = np.flatnonzero(draft[: len(truth)] != truth)
            n = int(wrong[0]) if len(wrong) else len(truth)
            n_accepted += n
            n_passes += 1
            at += n + 1
        n_tokens += len(doc)
        if n_tokens > ACCEPTANCE_TOKENS:
            break
    return n_accepted / max(n_passes, 1)


def sample_contexts(docs: Sequence[Tokens], n: int) -> list[Tokens]:
    rng = np.random.default_rng(0)
    lengths = np.array([len(d) for d in docs], np.float64)
    chosen = rng.choice(len(docs), n, p=lengths / lengths.sum())
    contexts: list[Tokens] = []
    for i in chosen:
        end = int(rng.integers(1, len(docs[i]) + 1))
        contexts.append(docs[i][max(0, end - CONTEXT) : end])
    return contexts


@contextmanager
def _bar(what: str, total: int | None) -> Generator[Callable[..., None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)

        def show(done: int, of: int | None = total) -> None:
            bar.update(task, completed=done, total=of or None)

        yield show
