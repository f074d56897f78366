"""`codespec bench peers` with the bundled model; llama-server is replaced by a process that speaks
its protocol, since building it takes minutes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

from bench import results
from bench.peers import huggingface, report, run
from bench.peers.base import Decoded, DecodingTask, MissingPeerError
from bench.peers.run import PeerComparison
from bench.peers.server import Server
from codespec.backends.llama import kernels
from codespec.cli import INTERRUPTED
from codespec.cli.bench.peers import command
from codespec.config import Settings
from codespec.errors import ModelError
from codespec.models.resolve import draft_path, target_path
from codespec.types import Context
from tests.engines import strict_engine

LINES = "".join(f"    total_{i} = compute_value(first_{i}, second_{i})\n" for i in range(12))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two commits; the second adds lines like the first's."""
    folder = tmp_path / "repo"
    folder.mkdir()

    def git(*args: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@x")
        subprocess.run(["git", "-C", str(folder), *who, *args], check=True, capture_output=True)

    git("init", "-q")
    (folder / "a.py").write_text("def f():\n" + LINES)
    git("add", ".")
    git("commit", "-qm", "one")
    (folder / "a.py").write_text("def f():\n" + LINES + "\n\ndef g():\n" + LINES)
    git("commit", "-qam", "two")
    return folder


# Answers as the server does: a fixed continuation, its own timings.
SERVER = """
    import http.server, json, os, signal, sys
    n_asked = 0
    port = int(sys.argv[sys.argv.index("--port") + 1])
    if "--fail" in sys.argv or "ngram-mod" in sys.argv:
        sys.exit(3)
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args): pass
        def say(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def do_GET(self):
            self.say({"status": "ok"})
        def do_POST(self):
            global n_asked
            n_asked += 1
            if "ngram-map-k" in sys.argv and n_asked == int(os.environ.get("DIE_AT", 0)):
                os._exit(1)
            if "ngram-map-k" in sys.argv and n_asked == int(os.environ.get("INTERRUPT_AT", 0)):
                os.kill(os.getppid(), signal.SIGINT)
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            n = asked["n_predict"]
            if "ngram-map-k" in sys.argv and n_asked >= int(os.environ.get("NONSENSE_AT", 1e9)):
                return self.say(json.loads(os.environ["NONSENSE"]))
            self.say({"tokens": asked["prompt"][:n], "timings": {
                "predicted_n": n, "predicted_ms": 2.0 * n, "draft_n": 6, "draft_n_accepted": 3}})
    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    program = tmp_path / "server.py"
    program.write_text(textwrap.dedent(SERVER))
    script = tmp_path / "llama-server"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def no_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "transformers" else found(name)
    )


@pytest.mark.usefixtures("no_transformers")
def test_all_ways_decode_the_same_requests(
    repo: Path, server: Path, model_options: Settings
) -> None:
    comparison = PeerComparison(
        repo, model_options, str(server), n_places=2, n_repeats=1, quick=True
    )
    rows = {(row["config"], row["workload"]): row for row in comparison.run()}
    for workload in ("edits", "fresh"):
        plain, ours = rows["plain", workload], rows["codespec", workload]
        assert plain["ratio_to_plain"] == 1.0
        assert plain["mat"] == 1.0
        if kernels.NAME:
            theirs = rows["plain, llama.cpp's kernels", workload]
            assert theirs["mat"] == 1.0
            assert "predicted_ratio" not in theirs
        assert ours["n_tokens"] == plain["n_tokens"] > 0
        assert ours["same"] == 1.0
        assert rows["prompt lookup", workload]["same"] == 1.0
        assert plain["predicted_ratio"] == 1.0
        assert ours["predicted_ratio"] > 0
        peer = rows["llama-server ngram-simple", workload]
        assert (peer["drafted"], peer["accepted"]) == (6, 3)
        assert peer["tok_per_s"] < 500
    assert rows["prompt lookup", "edits"]["drafted"] > 0
    # A build of llama-server that does not know an option is no reason to stop.
    assert ("llama-server ngram-map-k", "edits") in rows
    assert ("llama-server ngram-mod", "edits") not in rows
    assert [m.config for m in comparison.missing if "did not start" in m.why] == [
        "llama-server ngram-mod"
    ]


@pytest.mark.usefixtures("no_transformers")
def test_what_is_not_installed_is_named_with_the_way_to_get_it(
    repo: Path,
    model_options: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    comparison = PeerComparison(repo, model_options, None, n_places=1, n_repeats=1, quick=True)
    rows = comparison.run()
    assert not [row for row in rows if "llama-server" in row["config"]]
    hints = {missing.why: missing.hint for missing in comparison.missing}
    assert "cmake --build" in hints["llama-server is not installed"]
    assert "codespec[peers]" in hints["transformers is not installed"]
    report.print_missing(comparison.missing)
    assert "pip install 'codespec[peers]'" in capsys.readouterr().err
    if "arctic suffix trie" not in {row["config"] for row in rows}:
        assert "pip install" in hints["arctic-inference is not installed"]


# Two calls of a server decode: a warm-up, the first edit, the same place as fresh text.
IN_THE_THIRD = "5"


@pytest.mark.usefixtures("no_transformers")
def test_a_peer_that_dies_counts_as_far_as_it_came(
    repo: Path, server: Path, model_options: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIE_AT", IN_THE_THIRD)
    comparison = PeerComparison(
        repo, model_options, str(server), n_places=2, n_repeats=1, quick=True
    )
    rows = {(row["config"], row["workload"]): row for row in comparison.run()}
    dying, others = "llama-server ngram-map-k", ("plain", "codespec", "llama-server ngram-simple")
    assert rows[dying, "edits"]["n_requests"] == 1
    assert (dying, "fresh") not in rows
    for workload in ("edits", "fresh"):
        assert [rows[config, workload]["n_requests"] for config in others] == [1, 1, 1]
    assert rows["codespec", "edits"]["ratio_to_best_other"] > 0
    assert min(rows["codespec", "edits"][name] for name in ("begin_ms", "own_us")) > 0
    died = [m for m in comparison.missing if "died" in m.why]
    assert [(m.config, m.how) for m in died] == [(dying, "ended early")]
    assert not comparison.ended


@pytest.mark.parametrize(
    "nonsense",
    [
        *("3", "[]", "{}", '{"timings": [], "tokens": []}', '{"timings": {}, "tokens": []}'),
        '{"tokens": [1], "timings": {"predicted_n": 1, "predicted_ms": NaN}}',
        '{"tokens": [1], "timings": {"predicted_n": 1, "predicted_ms": -5}}',
        '{"tokens": ["x"], "timings": {"predicted_n": 1, "predicted_ms": 1}}',
    ],
)
def test_a_server_that_says_nonsense_is_named(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nonsense: str
) -> None:
    monkeypatch.setenv("NONSENSE_AT", "3")
    monkeypatch.setenv("NONSENSE", nonsense)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # is for other machines
    peer = Server("s", str(server), ("ngram-map-k",), tmp_path / "m.gguf", None, 1, 256)
    peer.start()
    try:
        job = DecodingTask(Context(np.arange(9, dtype=np.int32)), 5)
        assert peer.decode(job).tokens == [0, 1, 2, 3, 4]
        with pytest.raises(ModelError, match="s: that is no answer"):
            peer.decode(job)
    finally:
        peer.close()


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("print('{}', flush=True); input(); print('nonsense')", "transformers ended"),
        ("print('{}', flush=True); input(); print('3')", "t: that is no answer"),
        ("print('{}', flush=True); input(); print('{}')", "t: that is no answer"),
        ("print('{}', flush=True); input(); raise SystemExit('gone')", "transformers ended: gone"),
        ("print('{}', flush=True); [input() for _ in 'ab']", "transformers ended"),  # hangs
    ],
)
def test_a_library_that_hangs_or_says_nonsense_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, words: str
) -> None:
    monkeypatch.setattr(huggingface, "module_command", lambda *args: [sys.executable, "-c", says])
    monkeypatch.setattr(huggingface.importlib.util, "find_spec", lambda name: name)
    library = huggingface.Library(tmp_path / "m.gguf", None, 1)
    peer = huggingface.HuggingFace("t", library, {}, [0])
    peer.start()
    monkeypatch.setattr(huggingface, "ANSWER_S", 0.5 if "for _" in says else 60)
    try:
        with pytest.raises(ModelError, match=words):
            peer.decode(DecodingTask(Context(np.arange(9, dtype=np.int32)), 5))
    finally:
        peer.close()


@pytest.mark.usefixtures("no_transformers")
def test_what_was_finished_before_an_interrupt_is_printed_and_kept(
    repo: Path, server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERRUPT_AT", IN_THE_THIRD)
    output = tmp_path / "rows.jsonl"
    options = ["--quick", "--places", "7", "--json", "--output", str(output), "--threads", "1"]
    done = CliRunner().invoke(command, [str(repo), "--llama-server", str(server), *options])
    assert done.exit_code == INTERRUPTED, done.output
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert printed == results.read(output)
    assert {row["workload"] for row in printed} == {"edits"}
    assert {row["n_requests"] for row in printed} == {1}
    assert {"plain", "codespec"} < {row["config"] for row in printed}
    assert "interrupted at request 2" in done.stderr


# As native modules are: not to be loaded twice, and no read-only arrays.
TRIE = """
    open({loaded!r}, "x").close()
    class Draft:
        token_ids, score = [], 0.0
    class SuffixTree:
        def __init__(self, depth): pass
        def extend_ndarray(self, i, tokens):
            if not tokens.flags.writeable:
                raise TypeError("read-only")
        def speculate_ndarray(self, *args):
            return Draft()
"""


@pytest.mark.usefixtures("no_transformers")
def test_every_setting_of_the_suffix_trie(
    repo: Path, model_options: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    trie = tmp_path / "_C.py"
    trie.write_text(textwrap.dedent(TRIE).format(loaded=str(tmp_path / "loaded")))
    comparison = PeerComparison(repo, model_options, None, trie, n_places=1, n_repeats=1)
    rows = [row for row in comparison.run() if row["workload"] == "edits"]
    mats = [row["mat"] for row in rows if "suffix trie" in row["config"]]
    assert len(mats) == 5
    assert set(mats) == {1.0}


@pytest.mark.usefixtures("no_transformers")
def test_no_more_servers_than_memory_has_room_for(
    repo: Path,
    server: Path,
    model_options: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    size = target_path(model_options.model).stat().st_size
    small = draft_path(model_options.model)
    size += small.stat().st_size if small is not None else 0
    monkeypatch.setattr(run, "SERVER_BYTES", 0)
    monkeypatch.setattr(run, "MEMORY_SHARE", 2.5 * size / psutil.virtual_memory().total)
    total = psutil.virtual_memory().total
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=total, total=total)
    )
    comparison = PeerComparison(
        repo, model_options, str(server), n_places=1, n_repeats=1, quick=True
    )
    configs = {str(row["config"]) for row in comparison.run() if row["workload"] == "edits"}
    assert sum("llama-server" in config for config in configs) == 2
    report.print_missing(comparison.missing)
    assert "no memory for more than 2 llama-servers" in capsys.readouterr().err


def test_transformers_says_what_our_engine_says(model_options: Settings) -> None:
    """Greedy, with the same weights; where passes are fewer, drafts were accepted."""
    pytest.importorskip("transformers")
    engine = strict_engine(model_options)
    model = model_options.model
    library = huggingface.Library(target_path(model), draft_path(model), 1)
    try:
        prompt = engine.tokenizer.encode(LINES + "    total_12 = compute_value(first_")
        job = DecodingTask(Context(prompt), 24)
        tokens, _ = engine.passes.decode(job.context, 24, engine.drafter("", ()))
        ways = {**huggingface.DEFAULTS, **huggingface.DRAFT_DEFAULT}
        found: dict[str, Decoded] = {}
        for config, options in ways.items():
            peer = huggingface.HuggingFace(config, library, options, sorted(engine.info.eog))
            peer.start()
            found[config] = peer.decode(job)
    finally:
        library.close()
        engine.close()
    for decoded in found.values():
        assert decoded.tokens == tokens
        assert decoded.ms > 0
        assert 0 < decoded.n_timed < 24
        assert decoded.n_accepted <= decoded.n_drafted
    assert (found["transformers"].n_passes, found["transformers"].n_drafted) == (24, 0)
    assert found["transformers prompt lookup"].n_passes < 24
    assert found["transformers assisted"].n_drafted > 0


def test_a_model_that_transformers_cannot_read_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ModelError, match="transformers ended"):
        huggingface.Library(tmp_path / "missing.gguf", None, 1).start()


def test_a_server_that_dies_is_named(server: Path, tmp_path: Path) -> None:
    peer = Server("broken", str(server), ("--fail",), tmp_path / "m.gguf", None, 1, 256)
    with pytest.raises(ModelError, match="did not start"):
        peer.start()


def test_missing_peers_raise(tmp_path: Path) -> None:
    with pytest.raises(MissingPeerError):
        Server("server", None, (), tmp_path, None, 1, 256).start()


def test_the_servers_clock_starts_at_the_first_token(server: Path, tmp_path: Path) -> None:

    peer = Server("s", str(server), (), tmp_path / "m.gguf", None, 1, 256)
    peer.start()
    try:
        decoded = peer.decode(DecodingTask(Context(np.arange(9, dtype=np.int32)), 5))
    finally:
        peer.close()
    assert decoded.tokens == [0, 1, 2, 3, 4]
    assert (decoded.n_timed, decoded.ms, decoded.n_passes) == (4, 10.0, 2)


def test_the_end_token_takes_time_but_is_no_text(server: Path, tmp_path: Path) -> None:
    """Plain decoding does not tell of it, and what it wrote is compared with this."""
    peer = Server("s", str(server), (), tmp_path / "m.gguf", None, 1, 256, eog={4})
    peer.start()
    try:
        decoded = peer.decode(DecodingTask(Context(np.arange(9, dtype=np.int32)), 5))
    finally:
        peer.close()
    assert decoded.tokens == [0, 1, 2, 3]
    assert (decoded.n_timed, decoded.ms, decoded.n_passes) == (4, 10.0, 2)
