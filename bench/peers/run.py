"""All peers over all requests, alternating, and what came out as rows."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import psutil

from codespec.config import Settings
from codespec.engine.draft_models import check_draft
from codespec.engine.local import LocalEngine
from codespec.errors import ModelError
from codespec.models.resolve import draft_path, target_path
from codespec.requests import CompletionRequest

from ..history import History
from ..predicted import PassTimer, Run, TimedPasses
from ..replay_trees import Tree
from ..results import Row
from . import huggingface, server
from .base import Decoded, DecodingTask, MissingPeerError, Peer
from .inprocess import own_peers
from .workload import WritingPlace, places

PLAIN = "plain"
MAX_THREADS = 8
N_RESAMPLES = 2000
MEMORY_SHARE = 0.7
"""Share of the free memory for servers; each takes so much besides its model:"""
SERVER_BYTES = 100 << 20


@dataclass
class Missing:
    """A peer that could not take part, or `ended early`, and how to get it."""

    config: str
    why: str
    hint: str
    how: str = "left out"


@dataclass
class PeerTally:
    """One peer on one workload; a list a request of its repeats. predictable: what each request's
    time is predicted from, where it is a loop of ours."""

    runs: list[list[Decoded]] = field(default_factory=list[list[Decoded]])
    predictable: list[Run] = field(default_factory=list[Run])

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """(requests, 2) the median milliseconds of a request's repeats, and tokens in that time."""
        return np.array(
            [(statistics.median(d.ms for d in runs), runs[0].n_timed) for runs in self.runs]
        )

    @property
    def tok_per_s(self) -> float:
        ms, n = self.times.sum(axis=0).tolist()
        return 1e3 * n / ms if ms else 0.0

    def first(self, n: int) -> PeerTally:
        """The tally after the first n requests."""
        return PeerTally(self.runs[:n], self.predictable[:n])


@dataclass
class PeerComparison:
    """Runs the peers: each request goes through all of them before the next, `n_repeats` times, on
    the same number of threads: that of the settings, or one a core.

    A peer that is not installed, or does not start, is left out and named in `missing`; one that
    dies is named there, too, and counts as far as it came. `ended`: the reason why not all requests
    were made, "" where they were.
    """

    repo: Path
    settings: Settings
    llama_server: str | None = None
    arctic: Path | None = None
    n_commits: int = 25
    glob: str = "*.py"
    n_places: int = 40
    n_repeats: int = 3
    quick: bool = False
    missing: list[Missing] = field(default_factory=list[Missing])
    ended: str = ""

    def run(self, progress: Callable[[int, int], None] = lambda i, n: None) -> list[Row]:
        """Also of what was finished before an interrupt, if anything was.

        Raises: InputError, ModelError."""
        History(self.repo, self.glob)  # where there is none, that is said before all is loaded
        self._tree: Tree | None = None
        self._all: list[Peer] = []
        chosen = self.settings.model
        n_threads = chosen.n_threads or min(os.cpu_count() or 1, MAX_THREADS)
        model = msgspec.structs.replace(chosen, n_threads=n_threads)
        settings = msgspec.structs.replace(self.settings, model=model)
        engine = LocalEngine(settings, repository=lambda workspace: self._tree)
        started: list[Peer] = []
        try:
            engine.settle()
            self._all = list(self._peers(engine))
            self._start(self._all, started)
            wanted = list(
                places(self.repo, engine.tokenizer, self.n_commits, self.glob, self.n_places)
            )
            if not wanted:
                raise History(self.repo, self.glob).nothing()
            tallies: dict[tuple[str, str], PeerTally] = {}
            # Nobody's first request counts: pages are touched, kernels chosen, clocks raised.
            for peer in list(started):
                self._decode(peer, self._job(engine, wanted[0]), started)
            passes, i = PassTimer(engine.target), 0
            try:
                for i, place in enumerate(wanted):
                    progress(i, len(wanted))
                    passes.round(i / len(wanted))
                    job = self._job(engine, place)
                    if len(job.context.prompt):
                        self._ask(started, i // 2 % 2 == 1, job, place.workload, tallies)
            except KeyboardInterrupt:
                if not tallies:
                    raise
                self.ended = f"interrupted at request {i + 1} of {len(wanted)}"
            on = {
                "model": engine.info.name,
                "backend": engine.info.backend,
                "n_threads": engine.target.n_threads,
            }
            return rows(tallies, passes.costs(), on)
        finally:
            for peer in self._all:
                peer.close()
            engine.close()

    def _start(self, peers: Sequence[Peer], started: list[Peer]) -> None:
        """All at once: most of it is waiting. `started` holds those that run, in their order, even
        where one fails."""

        def start(peer: Peer) -> MissingPeerError | ModelError | None:
            try:
                peer.start()
            except (MissingPeerError, ModelError) as e:
                return e
            started.append(peer)
            return None

        with ThreadPoolExecutor(len(peers)) as pool:
            missing = zip(peers, pool.map(start, peers), strict=True)
            for peer, why in missing:
                if why is not None and why.message not in [m.why for m in self.missing]:
                    self.missing.append(Missing(peer.config, why.message, why.hint))
        started.sort(key=peers.index)

    def _ask(
        self,
        started: list[Peer],
        backwards: bool,
        job: DecodingTask,
        workload: str,
        tallies: dict[tuple[str, str], PeerTally],
    ) -> None:
        """backwards: nobody is always first after a pause, or always behind the same neighbour.
        Both workloads of an edit go the same way."""
        # The first to decode at a place would pay for what the others find warm.
        next(peer for peer in started if peer.config == PLAIN).decode(job)
        repeats: dict[str, list[Decoded]] = {peer.config: [] for peer in started}
        for i in range(self.n_repeats):
            for peer in started[:: -1 if (i % 2 == 1) != backwards else 1]:
                if (decoded := self._decode(peer, job, started)) is not None:
                    repeats[peer.config].append(decoded)
        predictable: dict[str, Run] = {}
        for peer in started:
            runs = repeats[peer.config]
            # Drafts differ between repeats, where a drafter learns: those of the one that counts.
            seen = sorted(runs, key=lambda d: d.ms)[len(runs) // 2].trace
            if seen is not None:
                n_context = len(job.context.prompt) + seen.n_tokens // 2
                # What a prediction knows of our own work is of another decoding.
                own_ms = peer.decode(job).own_ms
                predictable[peer.config] = Run(seen.pass_width, n_context, own_ms)
        for peer in started:  # an interrupt leaves all or nothing of a request
            tally = tallies.setdefault((peer.config, workload), PeerTally())
            tally.runs.append(repeats[peer.config])
            if peer.config in predictable:
                tally.predictable.append(predictable[peer.config])

    def _decode(self, peer: Peer, job: DecodingTask, started: list[Peer]) -> Decoded | None:
        """None where the peer dies, and leaves the others. Raises: ModelError where that is plain
        decoding, without which there is nothing to compare with."""
        try:
            return peer.decode(job)
        except ModelError as e:
            if peer.config == PLAIN:
                raise
            started.remove(peer)
            self.missing.append(Missing(peer.config, e.message, e.hint, "ended early"))
            return None

    def _job(self, engine: LocalEngine, place: WritingPlace) -> DecodingTask:
        self._tree = place.tree
        return DecodingTask(engine.context(self._request(place)), place.max_tokens, place.tree)

    def _request(self, place: WritingPlace) -> CompletionRequest:
        return CompletionRequest(
            place.prefix,
            place.suffix,
            path=place.path,
            workspace=str(self.repo) if place.tree is not None else "",
            max_tokens=place.max_tokens,
        )

    def _peers(self, engine: LocalEngine) -> Iterator[Peer]:
        yield from own_peers(engine, self.arctic, self.quick)
        chosen = self.settings.model
        draft = draft_path(chosen)
        if draft is not None and not check_draft(target_path(chosen), draft):
            draft = None  # others need one of the target's own tokens
        options = dict(server.DEFAULTS)
        if engine.info.backend == "cpu":
            options |= server.PLAIN_TUNED
        if draft is not None:
            options |= server.DRAFT_DEFAULT
        if not self.quick:
            options |= server.TUNED
            if draft is not None:
                options |= server.DRAFT_TUNED
        if engine.info.backend != "cpu":
            options = server.on_gpu(options)
        binary = server.find_server(self.llama_server)
        files = [target_path(chosen), *([draft] if draft is not None else [])]
        n_most = n_servers(sum(file.stat().st_size for file in files))
        for config in list(options)[n_most:]:
            why = f"there is no memory for more than {n_most} llama-servers with this model"
            self.missing.append(Missing(config, why, "Close other programs, or add --quick."))
            del options[config]
        for config, flags in options.items():
            yield server.Server(
                config,
                binary,
                flags,
                target_path(chosen),
                draft,
                engine.target.n_threads,
                engine.info.n_ctx,
                chosen.n_gpu_layers if engine.info.backend != "cpu" else 0,
                engine.info.eog,
            )
        library = huggingface.Library(target_path(chosen), draft, engine.target.n_threads)
        ways = dict(huggingface.DEFAULTS)
        if draft is not None:
            ways |= huggingface.DRAFT_DEFAULT
        if not self.quick:
            ways |= huggingface.TUNED
            if draft is not None:
                ways |= huggingface.DRAFT_TUNED
        for config, way in ways.items():
            yield huggingface.HuggingFace(config, library, way, sorted(engine.info.eog))


def n_servers(model_bytes: int) -> int:
    """How many servers fit into free memory side by side, each with weights of its own."""
    free = psutil.virtual_memory().available
    return int(free * MEMORY_SHARE // (model_bytes + SERVER_BYTES))


def rows(tallies: dict[tuple[str, str], PeerTally], costs: TimedPasses, on: Row) -> list[Row]:
    """A row a peer and workload, plain decoding first. on: what all rows say of the model.

    ratio_low, ratio_high: 95 % interval of `ratio_to_plain`. ratio_to_best_other: of plain decoding
    and codespec's ways alone, beside the fastest of the other systems. same: the share of requests
    for which the peer wrote what plain decoding wrote; floating point makes the difference.
    predicted_ratio: by what the passes cost, and what our own work took in another run. begin_ms,
    own_us: of our loop's own work, all that is not in a pass of a model, what a request takes
    once, and what a pass takes.
    """
    out: list[Row] = []
    for workload in dict.fromkeys(workload for _, workload in tallies):
        mine = {config: tally for (config, of), tally in tallies.items() if of == workload}
        for config in sorted(mine, key=lambda config: config != PLAIN):
            out.append(
                {
                    "config": config,
                    "workload": workload,
                    **on,
                    **_figures(mine[config], mine[PLAIN].first(len(mine[config].runs)), costs),
                    **({} if is_other(config) else _beside_best(mine[config], mine)),
                }
            )
    return out


def _figures(tally: PeerTally, plain: PeerTally, costs: TimedPasses) -> Row:
    firsts = [repeats[0] for repeats in tally.runs]
    texts = [repeats[0].tokens for repeats in plain.runs]
    n_tokens = sum(len(d.tokens) for d in firsts)
    n_passes = sum(d.n_passes for d in firsts)
    predicted, plainly = (costs.predicted_ms(side.predictable) for side in (tally, plain))
    same = sum(d.tokens == text for d, text in zip(firsts, texts, strict=True))
    return {
        "n_requests": len(firsts),
        "n_tokens": n_tokens,
        "tok_per_s": tally.tok_per_s,
        "ratio_to_plain": tally.tok_per_s / plain.tok_per_s if plain.tok_per_s else 0.0,
        **_interval("ratio", tally, plain),
        **({"predicted_ratio": plainly / predicted} if predicted else {}),
        "mat": n_tokens / n_passes if n_passes else 0.0,
        "drafted": sum(d.n_drafted for d in firsts),
        "accepted": sum(d.n_accepted for d in firsts),
        "same": same / len(firsts),
        **_own(tally),
    }


def _own(tally: PeerTally) -> Row:
    """Time of our loop beside the passes; {} for others' loops."""
    ours = [(d, d.trace) for repeats in tally.runs for d in repeats if d.trace is not None]
    n_passes = sum(d.n_passes for d, _ in ours)
    if not n_passes:
        return {}
    begin_ms = sum(trace.begin_ms for _, trace in ours)
    own_ms = sum(trace.ms - trace.model_ms for _, trace in ours)
    return {"begin_ms": begin_ms / len(ours), "own_us": 1e3 * (own_ms - begin_ms) / n_passes}


def ratio_interval(tally: PeerTally, other: PeerTally) -> tuple[float, float]:
    """95 % interval of the ratio of tokens a second, over which requests it might have been
    (bootstrap by requests, both sides of one together; Efron 1979, percentile method)."""
    rng = np.random.default_rng(0)
    a, b = tally.times, other.times
    chosen = rng.integers(0, len(a), (N_RESAMPLES, len(a)))
    (ms_a, n_a), (ms_b, n_b) = (times[chosen].sum(axis=1).T for times in (a, b))
    ratios = (n_a * ms_b) / np.maximum(n_b * ms_a, 1e-9)
    low, high = np.percentile(ratios, [2.5, 97.5]).tolist()
    return float(low), float(high)


def _interval(name: str, tally: PeerTally, other: PeerTally) -> Row:
    """{} of a single request, as nothing tells how another would have come out."""
    if len(tally.runs) < 2:
        return {}
    low, high = ratio_interval(tally, other)
    return {f"{name}_low": low, f"{name}_high": high}


def is_other(config: str) -> bool:
    """True if it is another system's way of decoding."""
    return config != PLAIN and not config.startswith("codespec")


def _beside_best(mine: PeerTally, tallies: Mapping[str, PeerTally]) -> Row:
    """Speed in units of the fastest other system's, of those that answered as many requests, and
    its 95 % interval; {} without any."""
    n = len(mine.runs)
    others = [tally for config, tally in tallies.items() if is_other(config)]
    others = [tally for tally in others if len(tally.runs) == n]
    best = max(others, key=lambda tally: tally.tok_per_s, default=None)
    if best is None or not best.tok_per_s:
        return {}
    return {
        "ratio_to_best_other": mine.tok_per_s / best.tok_per_s,
        **_interval("ratio_to_best_other", mine, best),
    }
