"""The measurements for GPUs, on whatever runs the tests: they need no GPU, they only mean little
without."""

from __future__ import annotations

import io
import json
import math
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench.gpu import pack
from bench.gpu.__main__ import Plan, main, tree_ratios
from bench.gpu.shapes import SHAPES, Shape, write_random
from bench.history import History
from codespec.backends.llama import LlamaTarget, load_model
from codespec.config import load_settings
from codespec.errors import ModelError
from codespec.models.registry import target_path
from codespec.types import NO_DRAFT

TINY = Shape("tiny", 1, 64, 2, 1, 64, 8192, True)


@pytest.mark.parametrize("quantisation", ["q8_0", "f16"])
def test_a_model_with_random_weights_runs(tmp_path: Path, quantisation: str) -> None:
    file = tmp_path / "tiny.gguf"
    bundled = target_path(load_settings().model)
    write_random(file, TINY, quantisation, bundled)
    model = load_model(file)
    source = load_model(bundled, vocab_only=True)
    try:
        assert model.info.n_vocab == 8192
        assert model.info.fim is not None
        assert source.info.fim is not None
        assert model.info.fim.prefix == source.info.fim.prefix
        target = LlamaTarget(model, n_ctx=256, n_threads=1)
        target.prefill(np.arange(5, dtype=np.int32), lambda: False)
        rows = target.decode(np.arange(5, dtype=np.int32), NO_DRAFT)
        assert np.isfinite(rows.row(0)).all()
        assert np.ptp(rows.row(0)) > 0
        trees = tree_ratios(target, 16, 2, 1)
        assert trees["n"] == [1, 5, 9, 17, 33]
        assert trees["ratio"][0] == 1.0
    finally:
        model.close()
        source.close()


@pytest.mark.parametrize(
    ("shape", "billions"), [*zip(SHAPES, (0.49, 1.54, 7.6, 14.7), strict=True)]
)
def test_shapes_have_the_sizes_they_are_named_for(shape: Shape, billions: float) -> None:
    n = sum(math.prod(size) for _, size in shape.tensors()) / 1e9
    assert n == pytest.approx(billions, rel=0.02)


def test_a_carried_history_is_replayed_there_as_here(tmp_path: Path) -> None:
    """Packed as on the machine with the network, cut off after some commits."""
    repo = tmp_path / "repo"
    repo.mkdir()
    who = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")

    def git(*args: str) -> None:
        subprocess.run(["git", "-C", str(repo), *who, *args], check=True, capture_output=True)

    git("init", "-q")
    text = ""
    for i in range(5):
        text += f"def function_{i}(first):\n    return first + {i}\n"
        (repo / "a.py").write_text(text)
        git("add", "-A")
        git("commit", "-qm", str(i))
    packed, folder = tmp_path / "packed", tmp_path / "work"
    for path in (packed, folder):
        path.mkdir()
    pack.history(packed, repo, 3)
    plan = Plan([(TINY, "q8_0")], (64,), 2, folder, {"repo": packed / "repo.bundle"})
    assert [name.split()[0] for name in plan.steps()] == [
        *("bundled", "curve", "replay", "pair", "peers"),
    ]
    clone = plan.clone("repo")
    assert plan.clone("repo") == clone
    assert [c.hunks for c in History(clone).commits(2)] == [
        c.hunks for c in History(repo).commits(2)
    ]


def test_sources_are_packed_under_their_own_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest ones too, which archives keep apart: without them CUDA does not build."""
    kernels = "vendor/llama.cpp/ggml/src/ggml-cuda/template-instances"
    names = [
        "llama_cpp/llama.py",
        "vendor/llama.cpp/CMakeLists.txt",
        f"{kernels}/{'fattn-mma-f16-instance-' * 4}.cu",
        "vendor/llama.cpp/tools/server/tests/unit/test_basic.py",
        "docs/index.md",
    ]

    def download(*args: str) -> None:
        folder = Path(args[args.index("--dest") + 1])
        with tarfile.open(folder / "x.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
            for name in names:
                entry = tarfile.TarInfo(f"llama_cpp_python-1.0/{name}")
                archive.addfile(entry, io.BytesIO())

    monkeypatch.setattr(pack, "pip", download)
    pack.sources(tmp_path)
    with tarfile.open(tmp_path / "llama.tar.xz") as archive:
        assert archive.getnames() == names[:3]


def test_what_the_other_machine_has_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(pack, "sources", lambda folder: None)
    monkeypatch.setattr(pack, "pip", lambda *args: asked.extend(args))
    monkeypatch.setattr("sys.argv", ["pack.py", str(tmp_path), "--without", "numpy,cmake"])
    pack.main()
    assert "ninja" in asked
    assert not {"numpy", "cmake"} & set(asked)
    monkeypatch.setattr("sys.argv", ["pack.py", str(tmp_path), "--without", "torch"])
    with pytest.raises(SystemExit):
        pack.main()


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def steps(_plan: Plan) -> dict[str, object]:
        def step(name: str) -> list[dict[str, str]]:
            made.append(name)
            if len(made) == 2:
                raise KeyboardInterrupt
            return [{"model": name}]

        return {name: lambda n=name: step(n) for name in ("one", "two", "three")}

    monkeypatch.setattr(Plan, "steps", steps)
    out = tmp_path / "results"
    args = ["--output", str(out), "--folder", str(tmp_path)]
    assert CliRunner().invoke(main, args).exit_code != 0
    assert CliRunner().invoke(main, args).exit_code == 0
    assert made == ["one", "two", "two", "three"]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["step"] for row in lines] == ["one", "two", "three"]
    assert CliRunner().invoke(main, args).exit_code == 0
    assert len(made) == 4


def test_a_step_that_fails_keeps_none_from_being_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> list[dict[str, str]]:
        raise ModelError("it does not fit")

    steps = {"one": broken, "two": lambda: [{"model": "two"}]}
    monkeypatch.setattr(Plan, "steps", lambda _plan: steps)
    out = tmp_path / "results"
    done = CliRunner().invoke(main, ["--output", str(out), "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert "one: it does not fit" in done.output
    assert "all done but one" in done.output
    assert [json.loads(line)["step"] for line in out.read_text().splitlines()] == ["two"]
