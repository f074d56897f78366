"""The time that ends and finishes a suggestion, of two versions in turns.

    python -m codespec_bench.maintainers.finishing ANSWERS PYTHON [PYTHON ...]

ANSWERS are places that `endings` kept; each PYTHON is the interpreter of one version's environment.
The versions are asked for one place after the other, each place `--repeats` times in turns, and the
least of a version's times counts: what the machine does beside that meets all of them alike. "ends"
are the rules that are asked after each step of the text, "finish" is what trims it and makes it
fit. Places are the same each time; the clock is not.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.engine.generation import generation_at
from codespec.requests import CompletionRequest
from codespec.syntax.trees import TreeCache
from codespec.types import NO_TOKENS, Context, Trace

from .. import answers, places
from .endings import N_AFTER, STEP

PARTS = ("ends", "finish")


def times(place: places.CutPlace) -> tuple[float, float]:
    """Seconds of each of PARTS where a model says the true text."""
    tokenizer = ByteTokenizer()
    request = CompletionRequest(place.prefix, place.suffix, path=str(place.path))
    context = Context(NO_TOKENS)
    made = generation_at(request, context, request.path, TreeCache(), tokenizer, Trace())
    stop = made.ends(tokenizer)
    said = place.truth + place.suffix[:N_AFTER]
    emitted: list[int] = []
    began = time.perf_counter()
    for at in range(0, len(said), STEP):
        emitted += said[at : at + STEP].encode()
        if stop(emitted):
            break
    ended = time.perf_counter()
    made.finished(bytes(emitted), "stop")
    return ended - began, time.perf_counter() - ended


def _serve(file: Path) -> None:
    """Answer each line, the number of a place, with its times."""
    rows = answers.read(file)
    for line in sys.stdin:
        print(*times(answers.place_of(rows[int(line)])), flush=True)


def _measured(
    workers: Sequence[subprocess.Popen[str]], asked: Sequence[int], repeats: int
) -> Iterator[list[tuple[float, float]]]:
    """The least times of each version, for each place."""
    for at in asked:
        found: list[list[tuple[float, float]]] = [[] for _ in workers]
        for turn in range(repeats):
            order = range(len(workers))
            for i in order if turn % 2 == 0 else reversed(order):
                pipe_in, pipe_out = workers[i].stdin, workers[i].stdout
                assert pipe_in is not None
                assert pipe_out is not None
                print(at, file=pipe_in, flush=True)
                ends, finish = map(float, pipe_out.readline().split())
                found[i].append((ends, finish))
        yield [(min(e for e, _ in of_one), min(f for _, f in of_one)) for of_one in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", type=Path)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--places", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if not given.pythons:
        _serve(given.answers)
        return
    n = len(answers.read(given.answers))
    asked = random.Random(0).sample(range(n), min(given.places, n))
    module = ("-m", "codespec_bench.maintainers.finishing", str(given.answers))
    workers = [
        subprocess.Popen(
            (python, *module), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for python in given.pythons
    ]
    try:
        list(_measured(workers, asked[:20], 1))  # the first ones import and compile
        found = np.array(list(_measured(workers, asked, given.repeats))) * 1e3
    finally:
        for worker in workers:
            worker.kill()
    for i, python in enumerate(given.pythons):
        row: dict[str, str | float] = {"bench": "finishing", "python": python, "n": len(asked)}
        for part, name in enumerate(PARTS):
            p50, p95 = np.percentile(found[:, i, part], (50, 95))
            row |= {f"{name}_ms_p50": round(p50, 3), f"{name}_ms_p95": round(p95, 3)}
        print(json.dumps(row))


if __name__ == "__main__":
    main()
