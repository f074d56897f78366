"""The measurements for GPUs, on whatever runs the tests: they need no GPU, they only mean little
without."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench import results
from bench.gpu import __main__ as gpu
from bench.gpu import build, clock, pack, shapes
from bench.gpu.__main__ import GpuPlan, main, tree_ratios
from bench.gpu.shapes import SHAPES, DecoderShape, write_random
from bench.history import History
from bench.replay_report import load_curve
from codespec.backends.llama import LlamaTarget, load_model
from codespec.config import load_settings
from codespec.errors import InputError, ModelError
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET
from codespec.models.resolve import target_path
from codespec.native import _core
from codespec.types import NO_DRAFT

TINY = DecoderShape("tiny", 1, 64, 2, 1, 64, 8192, True)


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
def test_shapes_have_the_sizes_they_are_named_for(shape: DecoderShape, billions: float) -> None:
    n = sum(math.prod(size) for _, size in shape.tensors()) / 1e9
    assert n == pytest.approx(billions, rel=0.02)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Five commits."""
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
    return repo


@pytest.fixture
def packed(tmp_path: Path, repo: Path) -> Path:
    """The last of them, as on the machine with the network."""
    packed = tmp_path / "packed"
    packed.mkdir()
    pack.history(packed, repo, 3)
    return packed


def test_a_carried_history_is_replayed_there_as_here(
    tmp_path: Path, repo: Path, packed: Path
) -> None:
    folder = tmp_path / "work"
    plan = GpuPlan([(TINY, "q8_0")], (64,), 2, folder, {"repo": packed / "repo.bundle"})
    assert [name.split()[0] for name in plan.steps()] == [
        *("bundled", "curve", "replay", "pair", "peers"),
    ]
    clone = plan.clone("repo")
    assert plan.clone("repo") == clone
    assert [c.hunks for c in History(clone).commits(2)] == [
        c.hunks for c in History(repo).commits(2)
    ]


def test_true_text_is_replayed_with_the_passes_of_a_real_model(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.replay.MIN_TOKENS", 4)
    plan = GpuPlan([(TINY, "q8_0")], (64, 256), 16, tmp_path / "work", {"repo": repo})
    plan.folder.mkdir()
    rows = [row for row in plan.steps()["curve tiny-q8_0"]() if "config" in row]
    assert [row["config"] for row in rows] == [*clock.CONFIGS]
    assert [row.get("draft_model") for row in rows] == [None, None, None, "codespec-draft"]
    plain = rows[0]
    assert (plain["mat"], plain["drafted_per_pass"], plain["speedup"]) == (1.0, 0.0, 1.0)
    assert plain["n_hunks"] == 4
    for row in rows:
        assert row["n_tokens"] == plain["n_tokens"] > 40
        assert row["mat"] >= 1.0
        assert row["ms_per_token"] > 0
        assert 0.1 < row["speedup"] / row["predicted_speedup"] < 10


def test_a_killed_clone_is_made_again(
    tmp_path: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gpu.git

    def killed(*args: str) -> None:
        if "fetch" in args:
            raise KeyboardInterrupt
        whole(*args)

    plan = GpuPlan([], (64,), 2, tmp_path / "work", {"repo": packed / "repo.bundle"})
    monkeypatch.setattr(gpu, "git", killed)
    with pytest.raises(KeyboardInterrupt):
        plan.clone("repo")
    monkeypatch.setattr(gpu, "git", whole)
    assert len(History(plan.clone("repo")).commits(9)) == 2


def test_a_history_may_be_named_as_what_is_in_the_folder(tmp_path: Path, packed: Path) -> None:
    folder = tmp_path / "work"
    (folder / "site").mkdir(parents=True)
    plan = GpuPlan([], (64,), 2, folder, {"site": packed / "repo.bundle"})
    assert len(History(plan.clone("site")).commits(9)) == 2


def test_a_bundle_that_is_none_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.bundle"
    broken.write_text("nothing\n")
    with pytest.raises(InputError, match=r"git: .*broken"):
        GpuPlan([], (64,), 2, tmp_path / "work", {"broken": broken}).clone("broken")


def test_the_current_folder_is_packed_by_its_name(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    pack.history(tmp_path, Path(), 3)
    assert (tmp_path / "repo.bundle").exists()


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_the_checkout_is_not_imported_where_a_build_is_run(tmp_path: Path) -> None:
    site, checkout = tmp_path / "build" / "site", tmp_path / "checkout"
    for folder, said in ((site, "import sys; print('built', *sys.argv[1:])"), (checkout, "1 / 0")):
        folder.mkdir(parents=True)
        (folder / "thing.py").write_text(said)
    build.launcher(site.parent)
    command = [site.parent / "run", "python", "-m", "thing", "--flag", "two words"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert done.stdout == "built --flag two words\n"


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD")
def test_where_libraries_disagree_about_cxx_all_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    linked = build.cxx_library(Path(_core.__file__))
    assert linked
    assert linked.name.startswith("libstdc++.so")
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ -n "$LD_PRELOAD" ]\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(build, "cxx_library", lambda _: linked)
    build.launcher(tmp_path)
    build.see_that_it_runs(tmp_path)
    assert f"LD_PRELOAD={linked}" in (tmp_path / "run").read_text()
    python.write_text("#!/bin/sh\necho no GPU >&2; exit 1\n")
    with pytest.raises(SystemExit, match="failed: "):
        build.see_that_it_runs(tmp_path)
    assert "no GPU" in capfd.readouterr().err


def test_what_was_built_is_tried_on_the_checkouts_history(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[GpuPlan] = []

    def steps(plan: GpuPlan) -> dict[str, Callable[[], list[results.Row]]]:
        plans.append(plan)
        return {}

    copy = tmp_path / "copy"
    copy.mkdir()
    monkeypatch.setattr(GpuPlan, "steps", steps)
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setattr(gpu, "CHECKOUT", copy / "checkout")
    args = ["--self-test", "--output", str(tmp_path / "results"), "--folder", str(tmp_path)]
    assert "replay, pair and peers are left out" in CliRunner().invoke(main, args).output
    monkeypatch.setattr(build, "ROOT", repo)
    build.note_checkout(copy)
    assert "left out" not in CliRunner().invoke(main, args).output
    assert [plan.repositories for plan in plans] == [{}, {"repo": repo}]


@pytest.mark.parametrize("fails", ["load_model", "_pool"])
def test_a_model_that_cannot_be_measured_takes_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def broken(_: object) -> None:
        raise OSError("too large")

    monkeypatch.setattr(gpu if fails == "load_model" else shapes, fails, broken)
    step = GpuPlan([(TINY, "q8_0")], (64,), 2, tmp_path, {}).steps()["curve tiny-q8_0"]
    with pytest.raises((OSError, InputError), match="too large"):
        step()
    assert list(tmp_path.iterdir()) == []


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

    def steps(_plan: GpuPlan) -> dict[str, object]:
        def step(name: str) -> list[dict[str, str]]:
            made.append(name)
            if len(made) == 2:
                raise KeyboardInterrupt
            return [{"model": name}]

        return {name: lambda n=name: step(n) for name in ("one", "two", "three")}

    monkeypatch.setattr(GpuPlan, "steps", steps)
    out = tmp_path / "results"
    args = ["--output", str(out), "--folder", str(tmp_path)]
    assert CliRunner().invoke(main, args).exit_code != 0
    assert CliRunner().invoke(main, args).exit_code == 0
    assert made == ["one", "two", "two", "three"]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["step"] for row in lines] == ["one", "two", "three"]
    assert CliRunner().invoke(main, args).exit_code == 0
    assert len(made) == 4


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModelError("it does not fit", "Get more."), "it does not fit. Get more."),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (ValueError("no number"), "ValueError: no number"),
        (subprocess.CalledProcessError(1, "git"), "CalledProcessError: Command 'git' returned"),
    ],
)
def test_a_step_that_fails_keeps_none_from_being_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def broken() -> list[dict[str, str]]:
        raise error

    steps = {"one": broken, "two": lambda: [{"model": "two"}]}
    monkeypatch.setattr(GpuPlan, "steps", lambda _plan: steps)
    out = tmp_path / "results"
    done = CliRunner().invoke(main, ["--output", str(out), "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert f"\none: {said}" in done.output
    assert "all done but one" in done.output
    assert [json.loads(line)["step"] for line in out.read_text().splitlines()] == ["two"]


def test_a_line_that_was_cut_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rest of its step, wherever the cut is."""
    made: list[str] = []

    def step(name: str) -> list[dict[str, str]]:
        made.append(name)
        return [{"model": name, "draft": draft} for draft in ("chain", "tree")]

    steps = {name: lambda n=name: step(n) for name in ("one", "two")}
    monkeypatch.setattr(GpuPlan, "steps", lambda _plan: steps)
    out = tmp_path / "results"
    args = ["--output", str(out), "--folder", str(tmp_path)]
    assert CliRunner().invoke(main, args).exit_code == 0
    whole = out.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    for n_cut in (1, 9, len(last) - 40):
        made.clear()
        out.write_bytes(whole[:-n_cut])
        assert CliRunner().invoke(main, args).exit_code == 0
        assert made == ["two"]
        assert out.read_bytes() == whole


def test_what_a_full_disk_cut_is_not_glued_to_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = results.append

    def full(path: Path, rows: list[results.Row]) -> None:
        append(path, rows)
        if rows and rows[0]["step"] == "one":
            os.truncate(path, path.stat().st_size - 9)
            raise InputError("No space left on device")

    steps = {name: lambda n=name: [{"model": n}] for name in ("one", "two")}
    monkeypatch.setattr(GpuPlan, "steps", lambda _plan: steps)
    monkeypatch.setattr(results, "append", full)
    out = tmp_path / "results"
    done = CliRunner().invoke(main, ["--output", str(out), "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert [row["step"] for row in results.read(out)] == ["two"]


def test_where_results_go_is_looked_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GpuPlan, "steps", lambda _plan: {"one": lambda: [{"model": "one"}]})
    out = tmp_path / "not" / "yet" / "results"
    args = ["--folder", str(tmp_path), "--output"]
    assert CliRunner().invoke(main, [*args, str(out)]).exit_code == 0
    assert [row["step"] for row in results.read(out)] == ["one"]
    done = CliRunner().invoke(main, [*args, str(out / "below")])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")


def test_a_run_goes_on_from_its_results_alone(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay takes the curve behind the longest context, as where it was measured."""
    replayed: list[dict[int, float]] = []

    def replay(
        _repo: Path, _told: Path, _n: int, _glob: str, curve: str, _width: int,
        drafts: Sequence[Path],
    ) -> list[results.Row]:  # fmt: skip
        assert [path.name for path in drafts] == [BUNDLED_DRAFT, BUNDLED_TARGET]
        replayed.append(dict(load_curve(curve).points))
        return [{"config": "plain"}]

    out = tmp_path / "results"
    monkeypatch.setattr(gpu, "replay", replay)
    args = ["--self-test", "--repo", str(repo), "--only", "replay", "--output", str(out)]
    args += ["--folder", str(tmp_path / "work")]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 1
    assert '--only "curve small-q8_0"' in done.output
    measured = {"step": "curve small-q8_0", "model": "small-q8_0", "n": [1, 8], "t1_ms": 2.0}
    rows = [
        {**measured, "draft": "chain", "ratio": [1.0, 1.25]},
        {**measured, "draft": "chain", "ratio": [1.0, 1.5]},
        {**measured, "draft": "tree of 2 leaves", "ratio": [1.0, 4.0]},
    ]
    results.append(out, results.stamped("gpu", rows))
    assert CliRunner().invoke(main, args).exit_code == 0
    assert replayed == [{1: 2.0, 8: 3.0}]


def test_an_interrupted_comparison_ends_the_run(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It swallows the interrupt, and its step would count as done."""

    class Interrupted:
        ended = "interrupted"
        missing = ()

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def run(self) -> list[results.Row]:
            return [{"config": "plain"}]

    monkeypatch.setattr(gpu, "PeerComparison", Interrupted)
    out = tmp_path / "results"
    args = ["--self-test", "--repo", str(repo), "--only", "peers", "--output", str(out)]
    done = CliRunner().invoke(main, [*args, "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert results.read(out) == []
