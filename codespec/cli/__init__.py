"""The command line. One file, or folder, per command; each is imported only when it is called."""

from __future__ import annotations

import errno
import importlib
import io
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from codespec import __version__
from codespec.errors import CodespecError, InputError
from codespec.system.processes import begin

_COMMANDS = {
    "tour": "Three minutes with codespec, on a repository of yours.",
    "complete": "Complete code at a position of a file.",
    "index": "Index a workspace, so that its text can draft.",
    "daemon": "Start, stop and watch the process that holds the model; serve it over HTTP.",
    "explain": "Say why a completion is what it is.",
    "doctor": "Look for what keeps completion from working well, and say what to do.",
    "stats": "Show or delete the local statistics of shown and accepted suggestions.",
    "models": "See, add and choose models.",
    "setup": "Build llama.cpp for this machine, where it was not built with codespec.",
    "distill": "Make a draft model for a target and a workspace.",
    "bench": "Measure codespec on this machine.",
    "lsp": "Serve an editor over standard input and output.",
}


INTERRUPTED = 128 + signal.SIGINT
"""Exit status of a command that SIGINT ended, as shells report it."""


class LazyGroup(click.Group):
    """Imports a command when it is used: `codespec lsp` should not wait for the others.

    package:   holds one module a command, each with a `command`.
    summaries: name -> line of help; a name's dashes are underscores in its module's name.
    """

    def __init__(self, *args: Any, package: str, summaries: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._summaries:
            return None
        module = f"{self._package}.{cmd_name.replace('-', '_')}"
        return importlib.import_module(module).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))


class _Main(LazyGroup):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        begin()
        return self.main(*args, **kwargs)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _encode_what_can_be()
        if sys.stdin is None:  # closed by whoever started us; questions find its end then
            sys.stdin = open(os.devnull)  # noqa: SIM115 - for as long as we run
        try:
            return super().main(*args, color=_colour(), **kwargs)
        except CodespecError as e:
            _fail(e)
        except OSError as e:  # but a broken pipe, which click ends quietly
            _drop_what_cannot_be_written()
            _fail(_with_cause(e))
        except UnicodeDecodeError as e:
            what = f"a file that should be text is not UTF-8: {e.reason} at byte {e.start}"
            _fail(InputError(what, "Give a text file, or convert it to UTF-8, e.g. with iconv."))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # the way to end some commands: not worth a word
            ctx.exit(INTERRUPTED)


def _encode_what_can_be() -> None:
    """Replace characters that the terminal's encoding lacks, rather than end in the middle of a
    table."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _colour() -> bool | None:
    """False for plain text; None: coloured if the output is a terminal. rich, which draws tables,
    decides by the same variables.

    Source: https://no-color.org
    """
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return False if plain else None


def _drop_what_cannot_be_written() -> None:
    """Drop output that cannot be written: newer Pythons keep it, try again at their end, and report
    the failure in their own way."""
    output: TextIO | None = sys.stdout
    if output is None:  # closed by whoever started us
        return
    try:
        output.flush()
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, output.fileno())
        os.close(nothing)


def _fail(e: CodespecError) -> NoReturn:
    click.secho(f"error: {printable(e.message, CODE)}", fg="red", err=True, color=_colour())
    if e.hint:
        click.echo(f"  {printable(e.hint, CODE)}", err=True)
    sys.exit(1)


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _with_cause(e: OSError) -> CodespecError:
    cause = e.strerror or str(e) or type(e).__name__
    if isinstance(e, FileNotFoundError) and _is_nowhere():
        return InputError("the current folder was deleted", "Go to one that is there, with cd.")
    if e.filename is None:  # of what was open already, the output above all
        return InputError(cause, "Check where the output goes, and the disk with the cache folder.")
    if e.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"{e.filename}: {cause}", "Make room there, then do this again.")
    return InputError(f"{e.filename}: {cause}", "Check that file or folder, or give another one.")


@click.group(
    cls=_Main,
    package=__name__,
    summaries=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="codespec")
def main() -> None:
    """Private, fast code completion on your own machine.

    The repository drafts, the model verifies: what you get is what the model would have said.

    Begin with:  codespec index .   then   codespec complete FILE:LINE:COL
    """


class FiniteRange(click.FloatRange):
    """A range of floats without infinity, and without NaN, which no bounds exclude."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def print_json(value: object) -> None:
    click.echo(json.dumps(value))


CODE = "\n\t"
"""Control characters that lay out text of several lines."""


def printable(text: str, kept: str = "") -> str:
    """A name or text of a repository for a terminal, with control characters, which the terminal
    would obey, escaped. kept: those that it may obey."""
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def draft_model_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--draft-model",
        "draft_model",
        metavar="MODEL",
        help="Draft model of any tokenizer, a GGUF file or a name from `models list`; "
        '"auto": as without settings; "none": none.',
    )(f)


def json_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object.")(f)


def model_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """--model and --draft-model, for every command that loads both."""
    return model_option(draft_model_option(f))


def model_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--model",
        metavar="MODEL",
        help="Target model: a GGUF file, a name from `models list`, or "
        '"bundled" (default: that of the settings).',
    )(f)


def model_settings(model: str | None, draft_model: str | None = None) -> dict[str, dict[str, Any]]:
    """The flags of `model_options` as options for `config.load_settings`.

    Files are given in full: what is started with these settings may run in another folder.

    Raises: InputError for a model that is named but not there.
    """
    values: dict[str, Any] = {}
    if model is not None:
        values["target"] = "" if model == "bundled" else _model_file(model)
    if draft_model is not None:
        values["draft"] = "" if draft_model == "none" else _model_file(draft_model)
    return {"model": values} if values else {}


def check_folder(folder: Path) -> None:
    """Raises: InputError if there is no such folder."""
    if not folder.is_dir():
        why = "a file, not a folder" if folder.exists() else "no such folder"
        raise InputError(f"{folder}: {why}", "Give the folder of a workspace.")


def _model_file(model: str) -> str:
    """The file of a model by its name on the user's list, or by its path. A path that leads nowhere
    stays as it is: the error comes when it is loaded."""
    from codespec.backends.registry import scheme_of
    from codespec.models import library

    if model in ("", "auto") or scheme_of(model):
        return model
    if library.listed(model) is None:
        path = Path(model)
        if path.is_file():
            return str(path.absolute())
        if path.name != model or path.suffix.lower() == ".gguf":
            return model
    return str(library.find(model))
