"""All peers over all requests, alternating, and what came out as rows."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from codespec.config import Settings
from codespec.engine.local import LocalEngine
from codespec.errors import InputError
from codespec.models.registry import draft_path, target_path
from codespec.types import CompletionRequest

from ..replay import Tree
from ..results import Row
from . import huggingface, server
from .base import Decoded, Job, MissingPeerError, Peer
from .inprocess import own_peers
from .workload import Place, places

PLAIN = "plain"
MAX_THREADS = 8


@dataclass
class Missing:
    """A peer that could not take part, and how to get it."""

    config: str
    why: str
    hint: str


@dataclass
class Tally:
    """One peer on one workload; a list a request of its repeats."""

    runs: list[list[Decoded]] = field(default_factory=list[list[Decoded]])

    @property
    def tok_per_s(self) -> float:
        """Of the median time of each request's repeats."""
        ms = sum(statistics.median(d.ms for d in repeats) for repeats in self.runs)
        return 1e3 * sum(repeats[0].n_timed for repeats in self.runs) / ms if ms else 0.0


@dataclass
class Comparison:
    """Runs the peers: each request goes through all of them before the next, `n_repeats` times, on
    the same number of threads: that of the settings, or one a core.

    A peer that is not installed is left out and named in `missing`.
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

    def run(self, progress: Callable[[int, int], None] = lambda i, n: None) -> list[Row]:
        """Raises: InputError, ModelError."""
        self._tree: Tree | None = None
        chosen = self.settings.model
        n_threads = chosen.n_threads or min(os.cpu_count() or 1, MAX_THREADS)
        model = msgspec.structs.replace(chosen, n_threads=n_threads)
        settings = msgspec.structs.replace(self.settings, model=model)
        engine = LocalEngine(settings, repository=lambda workspace: self._tree)
        started: list[Peer] = []
        try:
            engine.settle()
            self._start(list(self._peers(engine)), started)
            wanted = list(
                places(self.repo, engine.tokenizer, self.n_commits, self.glob, self.n_places)
            )
            if not wanted:
                raise InputError(f"{self.repo}: no edits", f'No commit adds to "{self.glob}".')
            tallies: dict[tuple[str, str], Tally] = {}
            # Nobody's first request counts: pages are touched, kernels chosen, clocks raised.
            for peer in started:
                peer.decode(self._job(engine, wanted[0]))
            for i, place in enumerate(wanted):
                progress(i, len(wanted))
                self._ask(engine, started, place, tallies)
            return rows(tallies, engine.info.name, engine.info.backend)
        finally:
            for peer in started:
                peer.close()
            engine.close()

    def _start(self, peers: Sequence[Peer], started: list[Peer]) -> None:
        """All at once: most of it is waiting. `started` holds those that run, in their order, even
        where one fails."""

        def start(peer: Peer) -> MissingPeerError | None:
            try:
                peer.start()
            except MissingPeerError as e:
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
        engine: LocalEngine,
        peers: Sequence[Peer],
        place: Place,
        tallies: dict[tuple[str, str], Tally],
    ) -> None:
        job = self._job(engine, place)
        if not len(job.context.prompt):
            return
        # The first to decode at a place would pay for what the others find warm.
        peers[0].decode(job)
        repeats: dict[str, list[Decoded]] = {peer.config: [] for peer in peers}
        for i in range(self.n_repeats):
            # Nobody is always first after a pause, or always behind the same neighbour.
            for peer in peers if i % 2 == 0 else reversed(peers):
                repeats[peer.config].append(peer.decode(job))
        for config, runs in repeats.items():
            tallies.setdefault((config, place.workload), Tally()).runs.append(runs)

    def _job(self, engine: LocalEngine, place: Place) -> Job:
        self._tree = place.tree
        return Job(engine.context(self._request(place)), place.max_tokens)

    def _request(self, place: Place) -> CompletionRequest:
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
        options = dict(server.DEFAULTS)
        if draft is not None:
            options |= server.DRAFT_DEFAULT
        if not self.quick:
            options |= server.TUNED
            if draft is not None:
                options |= server.DRAFT_TUNED
        binary = server.find_server(self.llama_server)
        for config, flags in options.items():
            yield server.Server(
                config,
                binary,
                flags,
                target_path(chosen),
                draft,
                engine.n_threads,
                engine.info.n_ctx,
                chosen.n_gpu_layers if engine.info.backend != "cpu" else 0,
            )
        library = huggingface.Library(target_path(chosen), draft, engine.n_threads)
        ways = dict(huggingface.DEFAULTS)
        if draft is not None:
            ways |= huggingface.DRAFT_DEFAULT
        if not self.quick:
            ways |= huggingface.TUNED
            if draft is not None:
                ways |= huggingface.DRAFT_TUNED
        for config, way in ways.items():
            yield huggingface.HuggingFace(config, library, way, sorted(engine.info.eog))


def rows(tallies: dict[tuple[str, str], Tally], model: str, backend: str) -> list[Row]:
    """A row a peer and workload, plain decoding first. same: the share of requests for which the
    peer wrote what plain decoding wrote; floating point makes the difference. predicted_ratio: of
    the same passes by the machine's curve alone."""
    out: list[Row] = []
    for (config, workload), tally in tallies.items():
        plain = tallies[PLAIN, workload]
        firsts = [repeats[0] for repeats in tally.runs]
        texts = [repeats[0].tokens for repeats in plain.runs]
        n_tokens = sum(len(d.tokens) for d in firsts)
        n_passes = sum(d.n_passes for d in firsts)
        predicted = sum(d.cost for d in firsts)
        plainly = sum(repeats[0].cost for repeats in plain.runs)
        same = sum(d.tokens == text for d, text in zip(firsts, texts, strict=True))
        out.append(
            {
                "config": config,
                "workload": workload,
                "model": model,
                "backend": backend,
                "n_requests": len(firsts),
                "n_tokens": n_tokens,
                "tok_per_s": tally.tok_per_s,
                "ratio_to_plain": tally.tok_per_s / plain.tok_per_s if plain.tok_per_s else 0.0,
                **({"predicted_ratio": plainly / predicted} if predicted else {}),
                "mat": n_tokens / n_passes if n_passes else 0.0,
                "drafted": sum(d.n_drafted for d in firsts),
                "accepted": sum(d.n_accepted for d in firsts),
                "same": same / len(firsts),
            }
        )
    return sorted(out, key=lambda row: str(row["workload"]))
