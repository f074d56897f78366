"""Our own time with a model on a server, beside that with the same model here:
python -m tests.team.own_time REPO

The bundled model completes places of a repository here. A server in a process of its own, in the
form of vLLM, then says the same at once: all that a completion takes is our own time, the way there
and back included. Here it is what a completion takes without the passes of the model. Both take
turns, and the median of some repeats counts. Places in words are left out: where the first answer
does not begin with what is typed of the word, a server is asked again, and has to think again.
Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import takewhile
from pathlib import Path
from typing import Any

from codespec.backends.remote.server_vocabulary import PROBE
from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from codespec.types import FimTokens
from codespec_bench.places import places_in
from tests.scripted_server import Exchange, completion, models, scripted_server

N_REPEATS = 5
N_BEFORE, N_AFTER = 128, 24
KINDS = ("line", "inline", "statement", "rest", "under")
ALONE: dict[str, Any] = {"context": {"symbols": "off", "buffers": "off", "edits": "off"}}


def key_of(prompt: list[int], suffix: int, others: Sequence[int]) -> str:
    """Identity of a place in a prompt, the suffix of which comes first: the tokens around the
    cursor, as far as the prompts of both ways hold them. suffix, others: ids of the markers."""
    near = prompt[: -N_BEFORE - 1 : -1], prompt[prompt.index(suffix) + 1 :][:N_AFTER]
    return json.dumps([list(takewhile(lambda token: token not in others, side)) for side in near])


def serve() -> None:
    """Answer as told by standard input, until that ends."""
    told = json.loads(sys.stdin.readline())
    answers: dict[str, tuple[list[int], str]] = told["answers"]

    def answer(exchange: Exchange) -> None:
        ids, finish = answers[key_of(exchange.body["prompt"], *told["markers"])]
        completion([[token] for token in ids], finish)(exchange)

    routes = {
        "/v1/models": models("vllm", "qwen2.5-coder", max_model_len=2048),
        "/tokenize": lambda exchange: exchange.answer({"tokens": told["probe"]}),
        "/v1/completions": answer,
    }
    with scripted_server(routes) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def own_ms(engine: LocalEngine, request: CompletionRequest) -> tuple[float, str]:
    """(milliseconds without those of passes here, text)"""
    done = engine.complete(request)
    passes_ms = 0.0 if engine.settings.model.target.startswith("http") else done.trace.model_ms
    return done.trace.ms - passes_ms, done.text


def measure(root: Path, n: int, n_repeats: int) -> dict[str, float]:
    places = places_in(root, n, KINDS, per_file=1)
    requests = [
        CompletionRequest(p.prefix, p.suffix, str(p.path), language_id=p.language, max_tokens=24)
        for p in places
    ]
    with ExitStack() as stack:
        here = stack.enter_context(closing(LocalEngine(load_settings(ALONE, env={}))))
        here.settle()
        here.remembers = False
        fim = here.info.fim
        assert isinstance(fim, FimTokens)
        assert fim.order == "spm"
        markers = fim.suffix, [fim.prefix, fim.middle]
        made = [here.generate(request) for request in requests]
        answers: dict[str, tuple[list[int], str]] = {}
        for one in made:
            said = list(one.tokens), "stop" if one.finish == "stop" else "length"
            key = key_of(one.context.prompt.tolist(), *markers)
            assert answers.setdefault(key, said) == said, "two places that the server cannot tell"
        probe = here.tokenizer.encode(PROBE).tolist()
        server = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "--serve", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(server.wait)
        stack.callback(server.kill)
        assert server.stdin is not None
        assert server.stdout is not None
        told = {"answers": answers, "markers": markers, "probe": probe}
        server.stdin.write(json.dumps(told) + "\n")
        server.stdin.flush()
        elsewhere = {
            "model": {"target": server.stdout.readline().strip()},
            "server": {"tokenizer": str(bundled(BUNDLED_TARGET))},
            **ALONE,
        }
        there = stack.enter_context(closing(LocalEngine(load_settings(elsewhere, env={}))))
        there.remembers = False
        more: list[float] = []
        own: list[float] = []
        n_equal = 0
        for request, one in zip(requests, made, strict=True):
            if not one.tokens or one.context.healed:
                continue
            for engine in (here, there):
                own_ms(engine, request)
            pairs = [(own_ms(here, request), own_ms(there, request)) for _ in range(n_repeats)]
            near, far = ([pair[way][0] for pair in pairs] for way in (0, 1))
            own.append(statistics.median(near))
            more.append(statistics.median(far) - own[-1])
            texts = [pairs[0][way][1] for way in (0, 1)]
            n_equal += texts[0] == texts[1]
            if texts[0] != texts[1]:
                print(f"{request.path}: {texts[0]!r} here, {texts[1]!r} there")
    cuts = statistics.quantiles(more, n=20)
    return {
        "n_places": len(more),
        "equal_texts": n_equal / len(more),
        "own_p50_ms": statistics.median(own),
        "more_p50_ms": statistics.median(more),
        "more_p95_ms": cuts[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--places", type=int, default=20, help="of each kind and language")
    parser.add_argument("--repeats", type=int, default=N_REPEATS)
    parser.add_argument("--serve", action="store_true", help="be the server")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    figures = measure(options.repository, options.places, options.repeats)
    for name, value in figures.items():
        print(f"{name:15}{value:8.2f}")
    print(json.dumps({"name": "own_time_elsewhere", **figures}))


if __name__ == "__main__":
    main()
