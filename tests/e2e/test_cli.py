"""The command line as a user types it: the real program, the bundled model, real files."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.cli import main
from codespec.config import Settings, load_settings
from codespec.models import library
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.reasons import NoSuggestion, ShapeReason, Trimming
from codespec.requests import Completion, CompletionRequest
from tests.e2e.command_line import codespec, error
from tests.engines import strict_engine

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    root.mkdir()
    (root / ".git").mkdir()
    for name in ("decoder.py", "encoder.py", "scanner.py"):
        (root / name).write_text((LIBRARY / "json" / name).read_text())
    half = (root / "encoder.py").read_text().splitlines(keepends=True)
    (root / "new.py").write_text("".join(half[:40]))
    return root


def test_help_teaches():
    stdout, _, _ = codespec("--help")
    for word in ("complete", "index", "daemon", "lsp", "FILE:LINE:COL"):
        assert word in stdout
    for command in (["complete"], ["index"], ["daemon"], ["daemon", "start"], ["lsp"]):
        assert "Usage:" in codespec(*command, "--help")[0]
    assert codespec("--version")[0].startswith("codespec, version ")


def test_complete_json(repository):
    codespec("index", repository)
    place = f"{repository / 'new.py'}:41:1"
    stdout, _, _ = codespec("complete", place, "--json", "--max-tokens", 24)
    result = json.loads(stdout)
    assert result["text"]
    assert 0 < result["n_tokens"] <= 24
    assert ShapeReason(result["shape_why_key"]).text == result["shape_why"]
    assert [Trimming(key).text for key in result["trimmed_keys"]] == result["trimmed"]
    assert result["backend"] == "cpu"
    assert result["model"]
    assert result["ms"] > 0
    assert result["n_drafted"] == sum(s["n_drafted"] for s in result["by_source"].values())
    assert result["n_accepted"] == sum(s["n_accepted"] for s in result["by_source"].values())
    assert result["n_tokens"] <= result["n_target_passes"] + result["n_accepted"]
    plain = json.loads(codespec("complete", place, "--json", "--max-tokens", 24, "--no-draft")[0])
    assert plain["text"] == result["text"]
    assert plain["n_drafted"] == 0
    lookup = json.loads(
        codespec("complete", place, "--json", "--max-tokens", 24, "--drafters", "lookup")[0]
    )
    assert lookup["text"] == result["text"]
    assert "draft-model" not in lookup["by_source"]
    none = codespec("complete", place, "--json", "--max-tokens", 24, "--drafters", "none")[0]
    assert json.loads(none)["n_drafted"] == 0


def test_the_repository_drafts(repository):
    """Text that stands in another file only is drafted from there once it is indexed."""
    (repository / "new.py").write_text('"""Implementation of JSONEncoder\n"""\nimport re\n\ntry:\n')
    place = f"{repository / 'new.py'}:6:1"
    before = json.loads(codespec("complete", place, "--json")[0])
    assert "repository" not in before["by_source"]
    codespec("index", repository)
    # On a busy machine the measured costs may say that nothing pays; here everything does.
    engine = strict_engine(load_settings())
    engine.settle()
    engine.close()
    curves = Path(os.environ["CODESPEC_CACHE_DIR"], "curves.json")
    measured = json.loads(curves.read_text())
    cheap = {"points": {"1": 1.0, "32": 1.1}}
    curves.write_text(json.dumps({key: curve | cheap for key, curve in measured.items()}))
    after = json.loads(codespec("complete", place, "--json")[0])
    assert after["text"] == before["text"]
    assert after["by_source"]["repository"]["n_drafted"] > 0


def test_a_single_line_is_one_of_the_models_own_text_too(repository, tmp_path):
    place = f"{repository / 'new.py'}:41:1"
    grammar = tmp_path / "lines.gbnf"
    grammar.write_text('root ::= "a" "\\n" "b"')
    for how in (["--verbatim"], ["--grammar", grammar]):
        args = ["complete", place, "--json", "--max-tokens", 40, *how]
        assert "\n" in json.loads(codespec(*args)[0])["text"]
        text = json.loads(codespec(*args, "--single-line")[0])["text"]
        assert text
        assert "\n" not in text


def test_complete_for_people(repository):
    stdout, _, _ = codespec("complete", f"{repository / 'new.py'}:41:1", "--max-tokens", 8)
    for word in ("model", "tokens", "target passes", "ms"):
        assert word in stdout


def test_figures_and_comparison(repository):
    place = f"{repository / 'new.py'}:41:1"
    args = ["complete", place, "--max-tokens", 8, "--stats", "--compare"]
    result = json.loads(codespec(*args, "--json")[0])
    assert len(result["pass_ms"]) == len(result["pass_depth"]) == result["n_target_passes"]
    assert sum(result["pass_accepted"]) == result["n_accepted"]
    figures = result["measures"]
    assert 0 < figures["time_to_first_token"] <= result["ms"]
    assert figures["tokens_per_pass"] == result["n_tokens"] / result["n_target_passes"]
    compared = result["comparison"]
    assert compared["same_text"]
    assert compared["speedup"] == pytest.approx(compared["plain_ms"] / compared["drafted_ms"])
    stdout, _, _ = codespec(*args)
    for word in ("p99", "compared", "times as fast"):
        assert word in stdout


def test_sampling_is_repeatable(repository):
    args = ["complete", f"{repository / 'new.py'}:41:1", "--json", "--max-tokens", 16]
    args += ["--temperature", 0.9, "--drafters", "lookup"]
    texts = [json.loads(codespec(*args, "--seed", seed)[0])["text"] for seed in (2, 2, 3, 4, 5)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 2


def test_columns_are_characters(tmp_path):
    file = tmp_path / "a.py"
    file.write_text('name = "𝒳é"  # x\nprint(na')
    codespec("complete", f"{file}:1:12", "--json", "--max-tokens", 2)
    assert "columns 1 to 17" in error("complete", f"{file}:1:18")


def test_an_empty_file_is_completed(tmp_path):
    (tmp_path / "a.py").write_text("")
    result = json.loads(codespec("complete", f"{tmp_path / 'a.py'}:1:1", "--json")[0])
    assert result["finish"] in ("stop", "length")


def test_programs_are_told_why_there_is_nothing(tmp_path):
    (tmp_path / ".env").write_text("a = 1\n")
    result = json.loads(codespec("complete", f"{tmp_path / '.env'}:1:1", "--json")[0])
    assert (result["text"], "secrets" in result["reason"]) == ("", True)
    assert result["reason_key"] == "excluded"


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_an_answer_of_no_model_is_a_failure(tmp_path, monkeypatch, how):
    class Ended:
        def __init__(self, settings: Settings) -> None:
            pass

        def complete(self, request: CompletionRequest) -> Completion:
            return Completion(why=NoSuggestion.FAILED, detail="the daemon ended")

        def close(self):
            pass

    (tmp_path / "a.py").write_text("")
    monkeypatch.setattr("codespec.daemon.client.DaemonEngine", Ended)
    done = CliRunner().invoke(main, ["complete", f"{tmp_path / 'a.py'}:1:1", "--daemon", *how])
    assert (done.exit_code, "the daemon ended" in done.output) == (1, True)


def test_index_reports_and_is_incremental(repository):
    first = json.loads(codespec("index", repository, "--json")[0])
    assert first["n_files"] == 4
    assert first["n_tokenised"] == 4
    assert first["n_tokens"] > 3000
    (repository / "scanner.py").write_text("def scan():\n    return 1\n")
    (repository / "decoder.py").unlink()
    (repository / ".gitignore").write_text("encoder.py\n")
    second = json.loads(codespec("index", repository, "--json")[0])
    assert second["n_files"] == 3  # new.py, scanner.py, .gitignore
    assert second["n_tokenised"] == 2
    assert codespec("index", repository, "--quiet")[0] == ""
    assert "bytes a token" in codespec("index", repository)[0]
    (repository / ".codespec.toml").write_text("enabled = false\n")
    assert "bytes a token" not in codespec("index", repository)[0]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("missing.py:1:1", ["missing.py", "no such file"]),
        ("a.py:9:1", ["line 9", "last one is 2"]),
        ("a.py:1:9", ["column 9", "columns 1 to 6"]),
        ("a.py:0:1", ["line 0"]),
        ("a.py", ["FILE:LINE:COL"]),
        (f"a.py:1:{'9' * 5000}", ["FILE:LINE:COL"]),
        ("b.bin:1:1", ["binary"]),
        ("c.txt:1:1", ["UTF-8"]),
        (".:1:1", ["directory"]),
    ],
)
def test_impossible_places(tmp_path, monkeypatch, place, words):
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x = 1\n")
    Path("b.bin").write_bytes(b"\0\1")
    Path("c.txt").write_bytes(b"\xff\xfe\xfd")
    message = error("complete", place)
    assert all(word in message for word in words), message


@pytest.fixture(scope="module")
def gguf():
    return bundled(BUNDLED_TARGET).read_bytes()


def test_unusable_models(tmp_path, gguf, repository):
    place = f"{repository / 'new.py'}:2:1"
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "text.gguf").write_text("hello, this is not a model")
    (tmp_path / "half.gguf").write_bytes(gguf[: len(gguf) // 2])
    (tmp_path / "header.gguf").write_bytes(gguf[:2000])
    for name, word in [
        ("none.gguf", "no such model file"),
        ("empty.gguf", "an empty file"),
        ("text.gguf", "not a GGUF file"),
        ("half.gguf", "cannot load"),
        ("header.gguf", "cannot load"),
    ]:
        message = error("complete", place, "--model", tmp_path / name)
        assert name in message
        assert word in message
    missing = error("complete", place, "--model", "none.gguf")
    assert "codespec models default bundled" in missing


def test_a_draft_model_with_other_tokens_drafts_all_the_same(tmp_path, gguf, repository):
    other = tmp_path / "other.gguf"
    other.write_bytes(gguf.replace("Ġreturn".encode(), "Ġretirn".encode()))
    args = ["complete", f"{repository / 'new.py'}:41:1", "--model", bundled(BUNDLED_TARGET)]
    texts = [
        json.loads(codespec(*args, "--json", "--draft-model", small)[0])["text"]
        for small in ("none", other)
    ]
    assert texts[0] == texts[1] != ""


def test_a_model_without_fim_completes_from_the_prefix(tmp_path, gguf, repository):
    """The ids are renamed in the metadata and the tokens in the vocabulary."""
    raw = gguf.replace(b"tokenizer.ggml.fim_", b"tokenizer.ggml.xim_").replace(b"<|fim_", b"<|xim_")
    file = tmp_path / "plain.gguf"
    file.write_bytes(raw)
    model = load_model(file, vocab_only=True)
    assert model.info.fim is None
    assert len(LlamaTokenizer(model).encode("def f(x):")) > 2
    model.close()
    args = ["complete", f"{repository / 'new.py'}:20:1", "--model", file, "--json"]
    assert json.loads(codespec(*args)[0])["n_tokens"] > 0


def test_mistaken_settings(tmp_path, repository):
    place = f"{repository / 'new.py'}:2:1"
    config = tmp_path / "config.toml"
    config.write_text("[completion]\nmax_token = 3\n")
    message = error("complete", place, CODESPEC_CONFIG=str(config))
    assert "max_token" in message
    assert 'Did you mean "completion.max_tokens"?' in message
    assert "CODESPEC_MODELS_TARGET" in error("index", repository, CODESPEC_MODELS_TARGET="x")
    message = error("index", repository, CODESPEC_COMPLETION_MAX_TOKENS="x").splitlines()[0]
    assert message.endswith("max_tokens = 'x': needs to be a whole number from 1 to 1,048,576")
    assert "unknown drafter" in error("complete", place, "--drafters", "lokup")


@pytest.mark.skipif(os.name != "posix", reason="folders in use can be deleted")
@pytest.mark.skipif(sys.version_info[:3] == (3, 13, 0), reason="numpy cannot be imported there")
@pytest.mark.parametrize("arguments", [["index"], ["doctor", "--quick"]])
def test_a_current_folder_that_was_deleted_is_said_to_be(tmp_path, arguments):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [sys.executable, "-m", "codespec", *arguments]
    run = f"import os, sys; os.rmdir({str(gone)!r}); os.execv(sys.executable, {command!r})"
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=gone, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "the current folder was deleted" in done.stderr) == (1, True)


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_an_unwritable_cache_folder_is_named(tmp_path, repository):
    (tmp_path / "file").write_text("")
    cache = str(tmp_path / "file" / "cache")
    message = error("index", repository, CODESPEC_CACHE_DIR=cache)
    assert cache in message
    assert "CODESPEC_CACHE_DIR" in message
    # Nothing in it is needed for a completion, nor for saying why.
    place = f"{repository / 'new.py'}:2:1"
    for args in (["complete", "--max-tokens", 4], ["explain"]):
        said, message, _ = codespec(args[0], place, *args[1:], "--json", CODESPEC_CACHE_DIR=cache)
        assert json.loads(said)["text"] == json.loads(codespec(*args, place, "--json")[0])["text"]
        assert cache in message
        assert "CODESPEC_CACHE_DIR" in message
    # Without a whole path nothing goes on, and nothing says so.
    assert "no index is used" not in error("complete", place, CODESPEC_CACHE_DIR="cache")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--temperature", "nan"], ["--temperature", "finite"]),
        (["--temperature", "inf"], ["--temperature", "finite"]),
        (["--top-p", "nan"], ["--top-p", "finite"]),
        (["--workspace", "nowhere"], ["--workspace", "does not exist"]),
        (["--workspace", "new.py"], ["--workspace", "is a file"]),
        (["--grammar", "binary"], ["binary: not UTF-8 text", "GBNF"]),
        (["--grammar", "empty"], ["empty: an empty file", "GBNF"]),
    ],
)
def test_mistaken_options(repository, monkeypatch, options, words):
    monkeypatch.chdir(repository)
    Path("binary").write_bytes(b"\xff\xfe\0")
    Path("empty").touch()
    message = error("complete", "new.py:2:1", *options)
    assert all(word in message for word in words), message
    if "--workspace" in options:
        assert error("explain", "new.py:2:1", *options) == message.replace("complete", "explain")


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    model = tmp_path / "model.gguf"
    model.write_bytes(bundled(BUNDLED_TARGET).read_bytes())

    def write(path, data):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(library, "write_atomically", write)
    done = CliRunner().invoke(main, ["models", "add", str(model)])
    assert done.exit_code == 1
    assert done.stderr.endswith("No space left on device\n  Make room there, then do this again.\n")


def test_errors_that_nobody_foresaw_name_their_cause(monkeypatch):
    def fail(error):
        def load(*_, **__):
            raise error

        monkeypatch.setattr("codespec.cli.models.list.load_settings", load)
        return CliRunner().invoke(main, ["models", "list"])

    gone = fail(PermissionError(13, "Permission denied", "/some/file"))
    assert (gone.exit_code, gone.exception.__class__) == (1, SystemExit)
    assert gone.output.startswith("error: /some/file: Permission denied\n")
    torn = fail(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))
    assert (torn.exit_code, torn.exception.__class__) == (1, SystemExit)
    assert "not UTF-8: invalid start byte at byte 0\n" in torn.output


def options_of(command, path):
    """(how it is called, option) of all that a user sees."""
    yield from ((path, p) for p in command.params if not getattr(p, "hidden", False))
    context = click.Context(command)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from options_of(command.get_command(context, name), f"{path} {name}")


def test_help_says_what_everything_is_for():
    silent = [
        f"{path} {option.opts[0]}"
        for path, option in options_of(main, "codespec")
        if isinstance(option, click.Option) and not option.help
    ]
    assert not silent
    for group in ([], ["daemon"], ["models"], ["bench"]):
        said = CliRunner().invoke(main, [*group, "--help"]).output
        assert "..." not in said.partition("Commands:")[2], "sentences are whole"


def test_a_report_without_a_terminal_comes_alone(repository):
    stdout, stderr, _ = codespec("index", repository)
    assert "4 files" in stdout
    assert not stderr


def test_index_of_nothing(tmp_path):
    assert "no such folder" in error("index", tmp_path / "none")
    (tmp_path / "a.py").write_text("x = 1\n")
    assert "a file, not a folder" in error("index", tmp_path / "a.py")
    (tmp_path / "empty").mkdir()
    assert json.loads(codespec("index", tmp_path / "empty", "--json")[0])["n_files"] == 0
    (tmp_path / "empty" / "poetry.lock").write_text("x = 1\n")
    report = json.loads(codespec("index", tmp_path / "empty", "--json")[0])
    assert (report["n_files"], report["why_not"]) == (0, {"lock_file": 1})
    assert "1 left out: a lock file" in codespec("index", tmp_path / "empty")[0]
