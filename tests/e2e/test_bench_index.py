"""`codespec bench index` on a small corpus: the promised figures, and that they can be true."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
FIGURES = (
    "n_tokens",
    "bytes_per_token",
    "build_mtok_per_s",
    "lookup_us_p50",
    "lookup_us_p99",
    "lookup_cold_us_p50",
    "lookup_cold_us_p99",
    "open_ms",
    "edit_ms",
    "source_mb_per_s",
    "switch_s",
    "switch_answers",
)


def bench(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codespec", "bench", "index", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_one_line_of_json_has_all_figures(tmp_path: Path) -> None:
    for path in sorted((LIBRARY / "json").glob("*.py")):
        shutil.copy(path, tmp_path)
    done = bench("--json", "--corpus", tmp_path, "--scale", 30_000)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    for name in FIGURES:
        assert result[name] > 0, name
    assert result["lookup_us_p50"] <= result["lookup_us_p99"]
    assert 5_000 < result["n_tokens"] < sum(p.stat().st_size for p in tmp_path.glob("*.py"))
    # A token takes its own bits and those of a position, and little else.
    assert 2 < result["bytes_per_token"] < 8
    assert result["bytes_per_token"] < result["bytes_per_token_wide"] < 9
    assert result["scale"]["n_tokens"] == 30_000
    side = result["side_by_side"]
    for name in ("segment", "automaton"):
        assert 0 < side[name]["accepted"] < 16
    # Samples instead of exact counts cost no accepted tokens, but for other choices among equals.
    assert side["segment"]["accepted"] > 0.9 * side["automaton"]["accepted"]
    assert {"cpu", "n_cores", "memory_gib", "os", "python", "codespec"} <= result["machine"].keys()


@pytest.mark.parametrize("option", ["--corpus", "--peer"])
def test_what_cannot_be_measured_is_said_plainly(tmp_path: Path, option: str) -> None:
    (tmp_path / "one.py").write_text("x = 1\n")
    value = tmp_path if option == "--corpus" else tmp_path / "one.py"
    done = bench("--json", option, value)
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["total = compute(first, second)\n", "other = total\n"], "the files say too little"),
        (["\0", "\0\0"], "the files say too little"),
        (["x = 1", "y = 1"], "different texts of some lines"),
    ],
)
def test_a_corpus_that_is_too_small_is_said_to_be(
    tmp_path: Path, texts: list[str], words: str
) -> None:
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.py").write_text(text)
    done = bench("--json", "--corpus", tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
