"""A training run killed for real: what is lost, and that nothing else is."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import torch

from codespec.train import bpe, train
from codespec.train.corpus import Corpus
from codespec.train.train import Trainer, load_model
from codespec.training.budget import TrainingBudget
from tests import training

INTERVAL = 3.0  # of the child's clock, in which a step takes a second
BUDGET = TrainingBudget(tokens=128 * 24)


def child(folder: Path, run: str, stop_at: int, where: str) -> None:
    """Trains until it is to be killed: after a step, or in the middle of writing a checkpoint."""
    ticks = itertools.count()
    train.CHECKPOINT_SECONDS = INTERVAL
    write = torch.save

    def wait() -> None:
        print("now", flush=True)
        sys.stdin.read()

    def write_half(content: object, path: Path) -> None:
        write(content, path)
        if trainer.state.step >= stop_at:
            path.write_bytes(path.read_bytes()[:1000])
            wait()

    if where == "writing":
        torch.save = write_half  # pyright: ignore[reportAttributeAccessIssue]
    trainer = Trainer(
        training.RECIPE,
        Corpus(folder / "corpus"),
        bpe.load(folder / "tokenizer.json"),
        folder / run,
        n_workers=2,
        clock=lambda: float(next(ticks)),
    )
    trainer.run(
        BUDGET,
        lambda state, _: wait() if where == "training" and state.step >= stop_at else None,
    )


def killed(*arguments: object) -> None:
    command = [sys.executable, "-m", __name__, *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.kill()
    assert process.returncode != 0


def test_a_killed_run_loses_an_interval_at_most(tmp_path: Path) -> None:
    """It also ends with the weights of a run that nobody killed, bit for bit."""
    data = training.small_corpus(tmp_path)
    words = training.small_tokenizer(data)
    words.save(str(tmp_path / "tokenizer.json"))
    whole = Trainer(training.RECIPE, data, words, tmp_path / "whole")
    end = whole.run(BUDGET)

    folder = tmp_path / "killed"
    last = 0
    for where, stop_at in (("training", 10), ("writing", 17)):
        killed(tmp_path, "killed", stop_at, where)
        log = (folder / "log.jsonl").read_text().splitlines()
        reached = json.loads(log[-1])
        assert reached["step"] >= stop_at
        resumed = Trainer(training.RECIPE, data, words, folder)
        # The checkpoint that was being written is as old as the interval itself.
        n_intervals = 1 if where == "training" else 2
        assert reached["seconds"] - resumed.state.seconds <= n_intervals * (INTERVAL + 1)
        assert last < resumed.state.step < reached["step"]
        last = resumed.state.step
    assert resumed.run(BUDGET).step == end.step
    a, b = load_model(tmp_path / "whole/final.pt"), load_model(folder / "final.pt")
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(x, y)


if __name__ == "__main__":
    child(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
