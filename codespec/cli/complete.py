"""`codespec complete FILE:LINE:COL`"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

import click

from codespec.cli import (
    CODE,
    FiniteRange,
    model_options,
    model_settings,
    print_json,
    printable,
)
from codespec.cli.cursor_argument import FilePlace, PlaceParam, request_at, warn_without_cache
from codespec.config import load_settings, without_none
from codespec.engine.measures import Comparison, Measures, measures
from codespec.engine.measures import compare as run_both
from codespec.errors import InputError
from codespec.requests import Completion, CompletionRequest, Engine, Idler
from codespec.types import SamplingParams, Trace

_MOST = (1 << 63) - 1  # what travels to the daemon


@click.command()
@click.argument("place", type=PlaceParam())
@model_options
@click.option(
    "--max-tokens",
    type=click.IntRange(1, _MOST),
    help="Most tokens to generate (default: that of the settings).",
)
@click.option("--no-draft", is_flag=True, help="Plain decoding: same text, more time.")
@click.option("--drafters", metavar="LIST", help='Only these, e.g. lookup,model, or "none".')
@click.option("--temperature", type=FiniteRange(0), help="0 (default): greedy.")
@click.option(
    "--top-k",
    type=click.IntRange(0, _MOST),
    default=0,
    help="Draw from this many of the likeliest tokens; 0 (default): from all.",
)
@click.option(
    "--top-p",
    type=FiniteRange(0, 1, min_open=True),
    default=1.0,
    help="Draw from the likeliest tokens that have this probability together; 1 (default): all.",
)
@click.option(
    "--min-p",
    type=FiniteRange(0, 1),
    default=0.0,
    help="Draw from tokens of at least this share of the highest probability; 0 (default): all.",
)
@click.option(
    "--repetition-penalty",
    type=FiniteRange(0.01, 100),
    default=1.0,
    help="Above 1, tokens that the output has already become less likely; 1 (default): off.",
)
@click.option(
    "--frequency-penalty",
    type=FiniteRange(-100, 100),
    default=0.0,
    help="The same, by how often the output has them; 0 (default): off.",
)
@click.option(
    "--presence-penalty",
    type=FiniteRange(-100, 100),
    default=0.0,
    help="The same, however often; 0 (default): off.",
)
@click.option("--grammar", type=click.File(encoding="utf-8"), help="GBNF that the text follows.")
@click.option("--stop", multiple=True, metavar="TEXT", help="End before TEXT; may be repeated.")
@click.option(
    "--seed",
    type=click.IntRange(-_MOST, _MOST),
    default=0,
    help="The same seed draws the same text; default: 0.",
)
@click.option("--single-line", is_flag=True, help="Stop at the end of the line.")
@click.option("--verbatim", is_flag=True, help="The model's own text, until it or a limit ends it.")
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder whose text drafts (default: the Git root of FILE, or its folder).",
)
@click.option("--daemon/--local", default=False, help="Ask the daemon, or load the model here.")
@click.option("--stats", is_flag=True, help="More figures: percentiles, acceptance by position.")
@click.option(
    "--compare", is_flag=True, help="Run it with and without drafting, five times, and compare."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, all figures in it.")
def command(
    place: FilePlace,
    model: str | None,
    draft_model: str | None,
    max_tokens: int | None,
    no_draft: bool,
    drafters: str | None,
    temperature: float | None,
    top_k: int,
    top_p: float,
    min_p: float,
    repetition_penalty: float,
    frequency_penalty: float,
    presence_penalty: float,
    grammar: TextIO | None,
    stop: tuple[str, ...],
    seed: int,
    single_line: bool,
    verbatim: bool,
    workspace: Path | None,
    daemon: bool,
    stats: bool,
    compare: bool,
    as_json: bool,
) -> None:
    """Complete the code at PLACE, given as FILE:LINE:COL.

    LINE and COL count from 1, COL in characters: 1 is before the first one. The text to insert is
    printed with what it took: passes of the model, and tokens drafted and accepted by source. Exit
    code 1 where no model answered, 0 also where there is nothing to insert.
    """
    settings = load_settings(model_settings(model, draft_model))
    request = request_at(place, workspace, settings)
    warn_without_cache()
    names = None if drafters is None else without_none(map(str.strip, drafters.split(",")))
    request = replace(
        request,
        max_tokens=max_tokens or request.max_tokens,
        sampling=SamplingParams(
            temperature=settings.completion.temperature if temperature is None else temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            frequency_penalty=frequency_penalty,
            presence_penalty=presence_penalty,
            seed=seed,
            grammar=_text_of(grammar),
        ),
        # The rule that ends suggestions at the line does not look at the model's own text.
        stop=(*stop, "\n") if single_line and (verbatim or grammar) else stop,
        drafters=() if no_draft else names,
        multiline=not single_line,
        verbatim=verbatim,
    )
    if daemon:
        from codespec.daemon.client import DaemonEngine

        engine = DaemonEngine(settings)
    else:
        from codespec.engine.local import LocalEngine

        engine = LocalEngine(settings)
    try:
        completion = engine.complete(request)
        comparison = _compare(engine, request) if compare else None
    finally:
        engine.close()
    if as_json:
        print_json(report(completion, comparison))
    else:
        _print(completion, request.prefix)
        if stats:
            _print_measures(measures(completion.trace))
        if comparison is not None:
            _print_comparison(comparison)
    if not completion.trace.model:  # nobody answered
        click.get_current_context().exit(1)


def _text_of(grammar: TextIO | None) -> str:
    """The grammar in a file, "" without one. Raises: InputError."""
    if grammar is None:
        return ""
    try:
        text = grammar.read()
    except UnicodeDecodeError as e:
        raise InputError(f"{grammar.name}: not UTF-8 text", "Give a grammar in GBNF.") from e
    if not text:  # which would stand for no grammar at all
        raise InputError(f"{grammar.name}: an empty file", "Give a grammar in GBNF.")
    return text


def _compare(engine: Engine, request: CompletionRequest) -> Comparison:
    if isinstance(engine, Idler):
        while engine.idle():  # drafting without a measured cost curve would not be at its best
            pass
    return run_both(engine.complete, request)


def report(completion: Completion, comparison: Comparison | None = None) -> dict[str, Any]:
    """A completion, its trace and figures computed from it as one JSON object."""
    trace = completion.trace
    said = {
        "text": completion.text,
        "finish": completion.finish,
        "reason": completion.reason,
        "reason_key": completion.why.value if completion.why else "",
    }
    found = {**said, **asdict(trace), **_reasons(trace)}
    found["measures"] = asdict(measures(trace))
    if comparison is not None:
        found["comparison"] = asdict(comparison)
    return found


def _reasons(trace: Trace) -> dict[str, object]:
    """Reasons in a trace, each as a text for people and as its key."""
    why = trace.shape_why
    return {
        "shape_why": why.text if why else "",
        "shape_why_key": why.value if why else "",
        "trimmed": [trimming.text for trimming in trace.trimmed],
        "trimmed_keys": [trimming.value for trimming in trace.trimmed],
    }


def _print(completion: Completion, prefix: str) -> None:
    trace = completion.trace
    if completion.text:
        line = printable(prefix.rsplit("\n", 1)[-1], CODE)
        click.echo(click.style(line, dim=True) + printable(completion.text, CODE))
    else:
        click.secho(f"no completion: {completion.reason}", fg="yellow")
    if not trace.model:  # nobody was asked
        return
    click.echo()
    n_passes, passes = trace.n_target_passes, ""  # a server does not tell them
    if n_passes:
        passes = f" in {n_passes} target passes ({trace.n_tokens / n_passes:.2f} a pass)"
    click.echo(f"model      {trace.model} on {trace.backend}")
    click.echo(f"tokens     {trace.n_tokens}{passes}")
    for source, stats in sorted(trace.by_source.items()):
        click.echo(f"  {source:<12} {stats.n_drafted:4d} drafted  {stats.n_accepted:4d} accepted")
    click.echo(
        f"time       {trace.ms:.1f} ms: context {trace.context_ms:.1f}, "
        f"drafting {trace.draft_ms:.1f}, target {trace.target_ms:.1f}; "
        f"first token after {trace.first_token_ms:.1f}"
    )


def _print_measures(m: Measures) -> None:
    click.echo(
        f"           first token after {m.time_to_first_token:.1f} ms, then "
        f"{m.time_per_token:.2f} ms a token; passes p50 {m.pass_percentiles[0]:.2f}, "
        f"p90 {m.pass_percentiles[1]:.2f}, p99 {m.pass_percentiles[2]:.2f} ms"
    )
    if m.accepted_at:
        shares = " ".join(f"{share:.0%}" for share in m.accepted_at)
        click.echo(f"accepted   at depth 1, 2, ...: {shares}")


def _print_comparison(c: Comparison) -> None:
    said = "same text" if c.same_text else "texts part at a tie between two tokens"
    click.echo(
        f"compared   plain {c.plain_ms:.1f} ms, drafted {c.drafted_ms:.1f} ms: "
        f"{c.speedup:.2f} times as fast, {said} (medians of {c.n_repeats})"
    )
    if c.joules_per_token is not None:
        plain, drafted = (1e3 * joules for joules in c.joules_per_token)
        click.echo(f"energy     plain {plain:.1f} mJ a token, drafted {drafted:.1f} mJ")
