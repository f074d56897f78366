"""Hugging Face transformers over pipes, in a process of its own: its threads and ours never meet.

    python -m codespec_bench.peers.huggingface_worker MODEL [DRAFT] --threads N

A line of JSON with "prompt", "max_tokens", "eog" and "options" (of `generate`) in, a line with
"tokens", "ms", "n_timed", "n_passes", "n_drafted" out. GGUF weights are unpacked to 32-bit floats,
which is what the library does with them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch


class _Passes:
    """Watches a generation: when each pass ended, how long the text was, what was drafted."""

    def __init__(self, model: Any) -> None:
        self._handle = model.register_forward_pre_hook(self._before, with_kwargs=True)
        self.times: list[float] = []
        self.lengths: list[int] = []
        self.widths: list[int] = []

    def _before(self, _model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        ids = kwargs.get("input_ids")
        self.widths.append(int((args[0] if ids is None else ids).shape[1]))

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        """A stopping criterion that never stops."""
        self.times.append(time.perf_counter())
        self.lengths.append(int(input_ids.shape[1]))
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)

    def close(self) -> None:
        self._handle.remove()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("draft", type=Path, nargs="?")
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(args.threads)
    # An extra, which is not there where types are checked.
    library: Any = importlib.import_module("transformers")
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def load(path: Path) -> Any:
        loaded = library.AutoModelForCausalLM.from_pretrained(
            str(path.parent), gguf_file=path.name, dtype=torch.float32
        )
        return loaded.to(device).eval()

    model = load(args.model)
    draft = load(args.draft) if args.draft else None
    print(json.dumps({"ready": library.__version__}), file=answers, flush=True)
    for line in sys.stdin:
        print(
            json.dumps(_answer(library, model, draft, json.loads(line))), file=answers, flush=True
        )


def _answer(library: Any, model: Any, draft: Any, asked: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = dict(asked["options"])
    if options.pop("assisted", False):
        for name in [k for k in options if k.startswith(("num_assistant", "assistant_"))]:
            setattr(draft.generation_config, name, options.pop(name))
        options["assistant_model"] = draft
    prompt = torch.tensor([asked["prompt"]], device=model.device)
    passes = _Passes(model)
    try:
        with torch.inference_mode():
            out = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=asked["max_tokens"],
                do_sample=False,
                eos_token_id=asked["eog"],
                pad_token_id=asked["eog"][0],
                stopping_criteria=library.StoppingCriteriaList([passes]),
                **options,
            )
    finally:
        passes.close()
    tokens: list[int] = out[0, prompt.shape[1] :].tolist()
    n_end = next((i for i, t in enumerate(tokens) if t in asked["eog"]), len(tokens))
    return {
        "tokens": tokens[:n_end],
        "ms": (passes.times[-1] - passes.times[0]) * 1e3,
        "n_timed": passes.lengths[-1] - passes.lengths[0],
        "n_passes": len(passes.times),
        "n_drafted": passes.widths[0] - prompt.shape[1] + sum(w - 1 for w in passes.widths[1:]),
    }


if __name__ == "__main__":
    main()
