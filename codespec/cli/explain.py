"""`codespec explain FILE:LINE:COL`"""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from codespec.cli import (
    CODE,
    json_option,
    model_options,
    model_settings,
    print_json,
    printable,
)
from codespec.cli.place import FilePlace, PlaceParam, request_at, warn_without_cache
from codespec.config import Settings, load_settings
from codespec.engine.explain import Explanation, Prompt, Span
from codespec.habits import Habits
from codespec.index.languages import language_of, language_of_id
from codespec.occasions import kind_of_place, why_unwelcome
from codespec.requests import CompletionRequest
from codespec.stats import Stats


class Unasked(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an editor suggests something here that nobody asked for. habit: what became of
    earlier suggestions at such places, "" where none is counted. why_not: "" where one is made."""

    kind: str
    habit: str
    why_not: str


@click.command()
@click.argument("place", type=PlaceParam())
@model_options
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder whose text drafts (default: the Git root of FILE, or its folder).",
)
@json_option
def command(
    place: FilePlace,
    model: str | None,
    draft_model: str | None,
    workspace: Path | None,
    as_json: bool,
) -> None:
    """Complete the code at PLACE, and say how the suggestion came about.

    Whether an editor suggests it unasked, what entered the prompt and why, how much was to be
    suggested, which file each drafted token came from, what the model accepted, what was trimmed,
    and what took how long. The model is loaded here: open documents and recent edits of an editor
    are not known.
    """
    from codespec.engine.explain import explain
    from codespec.engine.local import LocalEngine

    settings = load_settings(model_settings(model, draft_model))
    request = request_at(place, workspace, settings)
    warn_without_cache()
    engine = LocalEngine(settings)
    try:
        found = explain(engine, request)
    finally:
        engine.close()
    here = _unasked(request, settings)
    if as_json:
        print_json({**msgspec.to_builtins(found), "unasked": msgspec.to_builtins(here)})
    else:
        _print(found, here, request.prefix, request.workspace)


def _unasked(request: CompletionRequest, settings: Settings) -> Unasked:
    language = language_of(request.path)
    kind = kind_of_place(request.prefix, request.suffix)
    habits = Habits(None)
    if settings.stats.enabled:
        for (editors_name, place), counts in Stats().habits().items():
            habits.learn({(language_of_id(editors_name), place): counts})
    why = why_unwelcome(request.suffix)
    if not why and settings.completion.adaptive:
        why = habits.why_not(language, kind)
    known = habits.of(language, kind)
    return Unasked(kind=kind, habit=known.words if known.n_shown else "", why_not=why)


def _print(found: Explanation, here: Unasked, prefix: str, root: str) -> None:
    _title("suggestion")
    if found.text:
        line = printable(prefix.rsplit("\n", 1)[-1], CODE)
        click.echo(click.style(line, dim=True) + printable(found.text, CODE))
    else:
        click.secho(f"none: {found.reason}", fg="yellow")
    if found.prompt is None:
        return
    _title("unasked, in an editor")
    click.echo(f"not made: {here.why_not}" if here.why_not else "made")
    click.echo(f"suggestions {here.kind}: {here.habit or 'none shown yet'}")
    _title("how much")
    click.echo(f"{found.shape}: {found.shape_why}; generation ended by: {found.finish}")
    for what in found.trimmed:
        click.echo(f"trimmed: {what}")
    if found.trimmed:
        click.echo(f"generated was: {found.generated!r}")
    _title("prompt")
    _print_prompt(found.prompt, root)
    _title("passes of the model")
    for i, each in enumerate(found.passes, 1):
        click.echo(f"{i:3d}  {each.said!r}")
        for span in each.spans:
            click.echo(f"       {_span(span, root)}")
    _title("time")
    for stage, ms in found.times_ms.items():
        click.echo(f"{ms:8.1f} ms  {stage}")


def _print_prompt(prompt: Prompt, root: str) -> None:
    order = "fill-in-the-middle" if prompt.fim else "the text before the cursor alone"
    click.echo(f"{prompt.n_tokens} tokens, {prompt.n_cached} of them read before; {order}")
    click.echo(f"{prompt.n_before} of the file before the cursor, from line {prompt.first_line}")
    click.echo(f"{prompt.n_after} of the file after it")
    if prompt.healed:
        click.echo(
            f"{prompt.healed!r} is left to the model to say again, as part of a longer token"
        )
    if not prompt.snippets:
        click.echo("no text of other files")
    for shown in prompt.snippets:
        click.echo(f"{shown.source}: {_relative(shown.path, root)}: {printable(shown.why)}")


def _span(span: Span, root: str) -> str:
    where = f" from {_relative(span.path, root)}" if span.path else ""
    where += f":{span.line}" if span.line else ""
    accepted = f"{span.n_accepted} of {span.n_drafted} accepted"
    return f"{span.source}{where}: {accepted}" + (f" {span.text!r}" if span.text else "")


def _relative(path: str, root: str) -> str:
    inside = root and path.startswith(root + os.sep)
    return printable(os.path.relpath(path, root) if inside else path)


def _title(words: str) -> None:
    click.secho(words, bold=True)
