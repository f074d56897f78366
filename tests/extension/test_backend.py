"""A backend is one file: a generator of text alone serves an engine and an editor's session."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.backends import registry
from codespec.backends.byte_tokens import ByteTokenizer
from codespec.backends.generators import Generator, GeneratorPrompt, Stream
from codespec.cli import main
from codespec.config import load_settings
from codespec.daemon import control
from codespec.engine.generator import Streamed
from codespec.engine.local import LocalEngine
from codespec.engine.turns import Turns
from codespec.errors import InputError, ModelError
from codespec.reasons import NoSuggestion
from codespec.requests import Completion, CompletionRequest, Eagerness, Progress
from codespec.types import SamplingParams
from tests.e2e.conftest import PATIENT, Home, Spawn
from tests.extension import scribe

BEFORE, AFTER = "def f():\n    fi", "\n\nx = 1\n"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    monkeypatch.setitem(registry.SCHEMES, "scribe", scribe.__name__)
    engine = LocalEngine(load_settings({"model": {"target": "scribe:"}}, env={}))
    yield engine
    engine.close()


def asked(way: str = "", verbatim: bool = False) -> CompletionRequest:
    before = f"# {way}\n{BEFORE}" if way else BEFORE
    return CompletionRequest(
        before, AFTER, path="/w/a.py", language_id="python", verbatim=verbatim, max_tokens=200
    )


# --- in this process ------------------------------------------------------------------------


def test_its_text_ends_and_is_counted_as_any(engine: LocalEngine) -> None:
    done = engine.complete(asked())
    assert (done.text, done.finish) == ("first()", "stop")
    assert (done.trace.model, done.trace.backend) == ("scribe 1", "scribe")
    assert (done.trace.n_tokens, done.trace.n_target_passes) == (2, 0)  # of four bytes each
    limited = engine.complete(replace(asked(verbatim=True), max_tokens=3))
    assert (limited.text, limited.finish) == (scribe.TEXT[:12], "length")


def test_it_is_asked_in_its_familys_format(engine: LocalEngine) -> None:
    done = engine.complete(asked("shown", verbatim=True))
    above = "# shown\ndef f():\n"
    assert done.text == f"<|fim_prefix|>{above}<|fim_suffix|>{AFTER}<|fim_middle|>    fi"


def test_it_may_end_early(engine: LocalEngine) -> None:
    done = engine.complete(asked("short"))
    assert (done.text, done.finish) == ("fir", "length")


def test_it_may_fail_and_is_asked_again(engine: LocalEngine) -> None:
    with pytest.raises(ModelError, match="broke its pen"):
        engine.complete(asked("broken"))
    with pytest.raises(ModelError, match="scribe 1 failed: ValueError") as failed:
        engine.complete(asked("astray"))
    assert BEFORE not in str(failed.value)  # goes into a log
    assert engine.complete(asked()).text == "first()"


def test_it_may_be_slow_as_nobody_waits_longer_than_asked(engine: LocalEngine) -> None:
    late = engine.complete(replace(asked("slow"), deadline_ms=20.0))
    assert (late.text, late.finish) == ("", "deadline")
    looks = iter([False] * 3)
    cancelled = engine.complete(asked("slow"), lambda: next(looks, True))
    assert cancelled.finish == "cancelled"


def test_what_it_said_so_far_is_told(engine: LocalEngine) -> None:
    told: list[Progress] = []
    request = replace(asked("endless", verbatim=True), max_tokens=1 << 20)
    done = engine.complete(request, lambda: bool(told), told.append)
    assert done.finish == "cancelled"
    assert told[0].text
    assert done.text.startswith(told[0].text)


def test_others_take_their_turn(engine: LocalEngine) -> None:
    wants = iter([True])
    turns = engine.completing(asked(), paused=lambda _: next(wants, False))
    next(turns)
    other = engine.complete(replace(asked(), path="/w/b.py"))
    assert result(turns).text == other.text == "first()"


def result(turns: Turns[Completion]) -> Completion:
    while True:
        try:
            next(turns)
        except StopIteration as end:
            done = end.value
            assert isinstance(done, Completion)
            return done


def test_what_needs_passes_is_not_done(engine: LocalEngine) -> None:
    assert engine.complete(replace(asked(), n_candidates=3)).alternatives == ()
    assert list(engine.prefetching(asked())) == []
    assert not engine.idle()
    with pytest.raises(ModelError, match="no passes"):
        _ = engine.curve
    with pytest.raises(InputError, match="grammar"):
        engine.complete(replace(asked(), sampling=SamplingParams(grammar='root ::= "x"')))


class Speller(Generator):
    """Its tokens are the engine's. Goes on with what is in `says`, one text for each time."""

    def __init__(self, *says: str) -> None:
        self._says = iter(says)
        self.asked: list[str] = []
        self.tokenizer = ByteTokenizer()
        self.info = replace(scribe.Scribe().info, fim=None)

    def stream(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        self.asked.append(prompt.text)
        ids: Sequence[int] = self.tokenizer.encode(next(self._says)).tolist()
        yield from ([token] for token in ids)
        return "stop"


@pytest.mark.parametrize(
    ("says", "prompts", "text"),
    [
        (["irst()"], ["f"], "rst()"),
        (["(x)", "nd()"], ["f", "fi"], "nd()"),
        (["", "nd()"], ["f", "fi"], "nd()"),
    ],
)
def test_a_half_typed_word_is_asked_for_without_its_last_token_first(
    says: list[str],
    prompts: list[str],
    text: str,
    engine: LocalEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speller = Speller(*says)
    monkeypatch.setattr(engine, "_decoder", Streamed(speller, engine.settings))
    done = engine.complete(CompletionRequest("fi", path="/w/c.py", verbatim=True))
    assert (speller.asked, done.text) == (prompts, text)


# --- installed, in real processes -----------------------------------------------------------


@pytest.fixture
def installed(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A package with the one file, registered in one line."""
    site = tmp_path / "site"
    about = site / "scribe-1.dist-info"
    about.mkdir(parents=True)
    shutil.copy(scribe.__file__, site / "scribe_backend.py")
    (about / "entry_points.txt").write_text("[codespec.backends]\nscribe = scribe_backend\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(site)
    registry.plug_in.cache_clear()
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", "scribe:")
    return home


def test_it_serves_an_editor(installed: Home, spawn: Spawn) -> None:
    client = spawn()
    client.initialize(installed.workspace, options=PATIENT)

    def complete(name: str, way: str = "") -> str:
        uri = (installed.workspace / f"{name}.py").as_uri()
        client.open(uri, asked(way).prefix + AFTER)
        row = asked(way).prefix.count("\n")
        items = client.complete(uri, row, 6)
        return items[0]["insertText"] if items else ""

    assert complete("a") == "first()"
    assert complete("b", "short") == "fir"
    assert complete("c", "broken") == ""
    # The editor moves on while it still waits.
    uri = (installed.workspace / "d.py").as_uri()
    client.open(uri, asked("slow").prefix)
    left = client.post_completion(uri, 2, 6, True, None)
    client.notify("$/cancelRequest", {"id": left})
    assert complete("e") == "first()"

    report = control.status(load_settings())
    assert report is not None
    assert (report.state, report.model, report.backend) == ("ready", "scribe 1", "scribe")
    assert report.model_path == "scribe:"
    assert client.close() == 0


def test_commands_know_it(installed: Home) -> None:
    (installed.workspace / "a.py").write_text("def second():\n    \n")

    def said(*command: str) -> str:
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        return done.output

    assert "it decodes by itself" in said("doctor", "--quick", str(installed.workspace))
    assert "decodes by itself" in said("models", "show", "scribe:")
    assert "scribe:" in said("models", "list")
    assert "scribe:" in said("models", "default", "scribe:")
    place = f"{installed.workspace / 'a.py'}:2:5"
    assert "first()" in said("complete", place, "--model", "scribe:")
    said("index", str(installed.workspace), "--in-process")


def test_the_status_says_what_eagerness_goes_by(installed: Home, spawn: Spawn) -> None:
    """It gives no probabilities: length and place decide, and what is cut says so."""
    client = spawn()
    client.initialize(installed.workspace, options={"completion": {"eagerness": "low"}})
    client.wait_for_status("Normal", "completion.eagerness goes by length and habits")
    assert client.close() == 0


def test_without_probabilities_length_decides(engine: LocalEngine) -> None:
    request = replace(asked(), eagerness=Eagerness())
    done = engine.complete(request)
    assert (done.text, done.trace.has_log_probs) == ("first()", False)
    (chance,) = done.trace.chances
    held = engine.complete(replace(request, eagerness=Eagerness(chance + 0.01)))
    assert held.why is NoSuggestion.HELD_BACK
