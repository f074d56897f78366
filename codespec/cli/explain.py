"""`codespec explain FILE:LINE:COL`"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

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
from codespec.cli.cursor_argument import FilePlace, PlaceParam, request_at, warn_without_cache
from codespec.cli.next_edits_here import NextEditsHere, next_edits_here
from codespec.config import CompletionSettings, Settings, load_settings
from codespec.engine.explanation import Explanation, Prompt, Span
from codespec.languages.registry import language_of, language_of_id
from codespec.reasons import NoSuggestion
from codespec.requests import CompletionRequest, Eagerness
from codespec.rules.open_files import OpenFileRules
from codespec.suggest.eagerness import log_odds, n_likely, probability
from codespec.syntax.unasked import why_not_here
from codespec.usage.habits import Habits
from codespec.usage.kept_odds import KeptOdds
from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind, kind_of_place

_STAGES = {"other": "reading the prompt, and other"}
"""Stages for people, where their keys say too little."""


class AutomaticSuggestion(msgspec.Struct, frozen=True, kw_only=True):
    """Unasked suggestion of an editor at this place. habit: acceptance of earlier suggestions at
    such places, "" if none is counted. why_not: the reason if none is made, else "". likely: what
    `completion.eagerness` goes by, "" at "high"; n_likely: lines that it shows."""

    kind: str
    kind_key: str
    habit: str
    why_not: str
    rule: str
    likely: str = ""
    n_likely: int = 0


@click.command()
@click.argument("place", type=PlaceParam())
@model_options
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder whose text drafts (default: the Git root of FILE, or its folder).",
)
@click.option(
    "--text",
    metavar="TEXT",
    help="Load no model: say what becomes of TEXT, if a model says it here; -: read it from "
    "standard input.",
)
@click.option(
    "--invoked", is_flag=True, help="With --text: as if you had asked, not while you type."
)
@click.option(
    "--ended",
    type=click.Choice(["stop", "length"]),
    help="With --text: the model ends there by itself (stop, the default), or is cut off (length).",
)
@json_option
def command(
    place: FilePlace,
    model: str | None,
    draft_model: str | None,
    workspace: Path | None,
    text: str | None,
    invoked: bool,
    ended: Literal["stop", "length"] | None,
    as_json: bool,
) -> None:
    """Complete the code at PLACE, and say how the suggestion came about.

    Whether an editor suggests it unasked, whether next edits come in this file, what entered the
    prompt and why, how much was to be suggested, which file each drafted token came from, what the
    model accepted, what was trimmed, and what took how long. The model is loaded here: open
    documents and recent edits of an editor are not known.

    With --text, no model is loaded, and FILE may be any: what would an editor insert at PLACE, if a
    model said TEXT there? Rules that changed TEXT are named. Where nothing is suggested unasked,
    the reason is told, and the text only with --invoked.

    It is inserted: "replaces" of --json, the text after the cursor that gives way, is "" as of now.
    For example:

    \b
      codespec explain app.py:12:9 --text 'foo(a)) + bar' --invoked
      codespec explain app.py:12:9 --text - --json < said.txt
    """
    if text is not None:
        _explain_text(place, workspace, _given(text), invoked, ended or "stop", as_json)
        return
    if invoked or ended:
        raise click.UsageError("--invoked and --ended go with --text.")
    from codespec.engine.explanation import explain
    from codespec.engine.local import LocalEngine

    settings = load_settings(model_settings(model, draft_model))
    request, limits = _in_editors(request_at(place, workspace, settings), settings)
    if limits.eagerness != "high":
        request = replace(request, eagerness=Eagerness())
    warn_without_cache()
    engine = LocalEngine(settings)
    try:
        found = explain(engine, request)
    finally:
        engine.close()
    here = _unasked(request, limits, settings)
    if found.chances and not here.why_not:
        here = _likely(here, found, request, limits, settings)
    edits = next_edits_here(request, settings)
    if as_json:
        told = {"unasked": msgspec.to_builtins(here), "next_edits": msgspec.to_builtins(edits)}
        print_json({**msgspec.to_builtins(found), **told})
    else:
        _print(found, here, edits, request.prefix, request.workspace)


def _given(text: str) -> str:
    """The text of the option."""
    if text == "-":
        return sys.stdin.buffer.read().decode()
    # Bytes of the command line that are no UTF-8 stand as surrogates.
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _explain_text(
    place: FilePlace,
    workspace: Path | None,
    text: str,
    invoked: bool,
    ended: Literal["stop", "length"],
    as_json: bool,
) -> None:
    from codespec.engine.given_text import finish_text

    settings = load_settings()
    request, limits = _in_editors(request_at(place, workspace, settings), settings)
    found = finish_text(request, text, ended)
    rules = OpenFileRules(settings.index.exclude)
    excluded = rules.why_excluded(request.path, request.workspace)
    unasked = excluded or _unasked(request, limits, settings).why_not
    if excluded or (unasked and not invoked):
        found = msgspec.structs.replace(found, text="", replaces="")
    if as_json:
        print_json({**msgspec.to_builtins(found), "unasked": unasked})
        return
    _title("suggestion")
    none = unasked if excluded or not invoked else ""
    _print_suggestion(found.text, request.prefix, none or NoSuggestion.NOTHING_LEFT.text)
    if found.replaces:
        click.echo(f"in place of {found.replaces!r}, which stands after the cursor")
    _title("unasked, in an editor")
    click.echo(f"not made: {unasked}" if unasked else "made")
    _title("how much")
    click.echo(f"{found.shape}: {found.shape_why}")
    for what, key in zip(found.trimmed, found.by_rule, strict=True):
        click.echo(f"trimmed: {what} ({key})")


def _print_suggestion(text: str, prefix: str, reason: str) -> None:
    if text:
        line = printable(prefix.rsplit("\n", 1)[-1], CODE)
        click.echo(click.style(line, dim=True) + printable(text, CODE))
    else:
        click.secho(f"none: {reason}", fg="yellow")


def _unasked(
    request: CompletionRequest, limits: CompletionSettings, settings: Settings
) -> AutomaticSuggestion:
    """limits: of `settings`, less what the workspace asks for."""
    language = language_of(request.path)
    kind = kind_of_place(request.prefix, request.suffix)
    habits = Habits(None)
    if settings.stats.enabled:
        for (editors_name, place), counts in Stats().habits().items():
            habits.learn({(language_of_id(editors_name), place): counts})
    rule = why_not_here(limits, request.prefix, request.suffix, request.path)
    why_not = rule.text if rule else ""
    if rule is None and limits.adaptive:
        why_not = habits.why_not(language, kind)
    known = habits.of(language, kind)
    return AutomaticSuggestion(
        kind=kind.text,
        kind_key=kind.value,
        habit=known.words if known.n_shown else "",
        why_not=why_not,
        rule=rule.value if rule else "",
    )


def _in_editors(
    request: CompletionRequest, settings: Settings
) -> tuple[CompletionRequest, CompletionSettings]:
    """The request as an editor makes it, and the settings for its document."""
    rules = OpenFileRules(settings.index.exclude)
    limits = settings.completion.restrained(rules.ruling(request.path, request.workspace).restraint)
    return replace(request, multiline=limits.lines != "single"), limits


def _likely(
    here: AutomaticSuggestion,
    found: Explanation,
    request: CompletionRequest,
    limits: CompletionSettings,
    settings: Settings,
) -> AutomaticSuggestion:
    """The same with what `completion.eagerness` shows of the suggestion."""
    level, kind = limits.eagerness, PlaceKind(here.kind_key)
    odds = KeptOdds(None)
    if settings.stats.enabled:
        for (editors_name, place), counts in Stats().outcomes().items():
            odds.learn({(language_of_id(editors_name), place): counts})
    asked = odds.eagerness(level, language_of(request.path), kind)
    if asked is None:
        return here
    is_below = found.text.startswith("\n") and kind is not PlaceKind.EMPTY_LINE
    shift = asked.shift_below if is_below else asked.shift
    n = n_likely(found.chances, asked.bar, shift, 0)
    said = ", ".join(f"{probability(log_odds(chance) + shift):.3f}" for chance in found.chances)
    told = f"likely to be kept, line by line: {said}; {level} shows what reaches {asked.bar}"
    return msgspec.structs.replace(
        here, likely=told, n_likely=n, why_not="" if n else NoSuggestion.HELD_BACK.text
    )


def _print(
    found: Explanation, here: AutomaticSuggestion, edits: NextEditsHere, prefix: str, root: str
) -> None:
    _title("suggestion")
    _print_suggestion(found.text, prefix, found.reason)
    if found.prompt is None:
        return
    _title("unasked, in an editor")
    click.echo(f"not made: {here.why_not}" if here.why_not else "made")
    if 0 < here.n_likely < len(found.chances):
        click.echo(f"cut to {here.n_likely} of {len(found.chances)} lines (completion.eagerness)")
    click.echo(f"suggestions {here.kind}: {here.habit or 'none shown yet'}")
    if here.likely:
        click.echo(here.likely)
    _title("next edits, in an editor")
    click.echo(edits.words)
    _title("how much")
    click.echo(f"{found.shape}: {found.shape_why}; generation ended by: {found.finish}")
    for what in found.trimmed:
        click.echo(f"trimmed: {what}")
    if found.trimmed and found.passes:
        click.echo(f"generated was: {found.generated!r}")
    _title("prompt")
    _print_prompt(found.prompt, root)
    for text in found.shown:
        _title("shown to the server, asterisks in the place of what looks like a secret")
        click.echo(printable(text, CODE))
    for request in found.sent:
        _title("sent, with the server's key beside")
        click.echo(printable(request, CODE))
    if found.passes:
        _title("passes of the model")
    for i, each in enumerate(found.passes, 1):
        click.echo(f"{i:3d}  {each.said!r}")
        for span in each.spans:
            click.echo(f"       {_span(span, root)}")
    _title("time")
    for stage, ms in found.times_ms.items():
        click.echo(f"{ms:8.1f} ms  {_STAGES.get(stage, stage)}")


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
