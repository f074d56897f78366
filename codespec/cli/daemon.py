"""`codespec daemon start|stop|status|restart|logs|http`"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from codespec.backends.registry import decodes_by_itself, trouble_of
from codespec.cli import json_option, model_options, model_settings, print_json
from codespec.config import load_settings
from codespec.daemon import control
from codespec.daemon.address import Address
from codespec.daemon.wire import StatusReport
from codespec.next_edit import NoNextEdit


@click.group()
def command() -> None:
    """The background process that holds the model: one for all editors of a user.

    Editors start it by themselves, and it ends after a while without them.
    """


def _wait_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--no-wait", is_flag=True, help="Return before the model is loaded.")(f)


_all_option = click.option(
    "--all", "of_all", is_flag=True, help="Also those of other settings and versions."
)


@command.command()
@model_options
@_wait_option
@json_option
def start(model: str | None, draft_model: str | None, no_wait: bool, as_json: bool) -> None:
    """Start it; where it runs, load another model if one is given.

    Of target and draft model, the one that is not given is that of the settings.
    """
    settings = load_settings()
    if model is None and draft_model is None:
        show(control.start(settings, wait_ready=not no_wait), as_json)
    else:
        chosen = load_settings(model_settings(model, draft_model)).model
        report = control.switch_model(settings, chosen.target, chosen.draft, wait_ready=not no_wait)
        show(report, as_json)


@command.command()
@_all_option
@json_option
def stop(of_all: bool, as_json: bool) -> None:
    """End it and the model with it."""
    if of_all:
        n = control.stop_all()
        if as_json:
            print_json({"stopped": n})
        else:
            click.echo(f"stopped {n} of them" if n else "none was running")
        return
    stopped = control.stop(load_settings())
    if as_json:
        print_json({"stopped": stopped})
        return
    click.echo("stopped" if stopped else "it was not running")
    _name_others("stop")


@command.command()
@_all_option
@json_option
def status(of_all: bool, as_json: bool) -> None:
    """Show its model, memory and requests; a model's server is asked.

    Exit code 3 if it does not run, with --all if none does.
    """
    if of_all:
        found = control.running_daemons()
        _show_all(found, as_json)
        click.get_current_context().exit(0 if found else 3)
    settings = load_settings()
    report = control.status(settings)
    if report is not None:
        trouble = None
        if report.state == "ready":
            trouble = trouble_of(report.model_path, settings)
        show(report, as_json, trouble)
        return
    if as_json:
        print_json({"state": "stopped"})
    else:
        click.echo("not running; editors start it, or: codespec daemon start")
        _name_others("stop")
    click.get_current_context().exit(3)


def _name_others(how_to_end: str, mine: str = "") -> None:
    """Tell of daemons of other settings, which are easily forgotten. mine: the address of the one
    that does not count."""
    n = sum(str(address) != mine for address in control.running_addresses())
    if n:
        ways = f"codespec daemon status --all, {how_to_end} --all"
        click.echo(f"{n} of other settings or versions: {ways}")


@command.command()
@_all_option
@_wait_option
@json_option
def restart(of_all: bool, no_wait: bool, as_json: bool) -> None:
    """Stop it, then start it with the settings as they are now.

    One that was started with other settings, such as another model, is another one: it goes on
    until its editors have left it, unless --all ends it.
    """
    if of_all:
        control.stop_all()
    report = control.restart(load_settings(), wait_ready=not no_wait)
    if not as_json:
        _name_others("restart", report.address)
    show(report, as_json)


@command.command()
@click.option(
    "-n",
    "n_lines",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="How many lines to show.",
)
def logs(n_lines: int) -> None:
    """Show the last lines of its log. The log holds no source text."""
    path, lines = control.logs(load_settings(), n_lines)
    click.echo(f"{path}:", err=True)
    for line in lines:
        click.echo(line)


@command.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8012,
    show_default=True,
    help="0: any that is free.",
)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keys, one a line, of which requests must show one; read at the start.",
)
@click.option(
    "--workspace",
    "workspaces",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    multiple=True,
    metavar="FOLDER",
    help="Requests may draft from this folder; may be repeated. The first one is the default.",
)
@click.option(
    "--access-log",
    "log_to",
    metavar="FILE",
    help="Write a line a request, without text, to a file that rotates; -: to standard error.",
)
def http(
    host: str, port: int, key_file: Path | None, workspaces: tuple[str, ...], log_to: str | None
) -> None:
    """Answer HTTP clients in the daemon's name, until Ctrl-C.

    \b
    POST /v1/completions, /v1/chat/completions   as OpenAI's, and Tabby's segments
    POST /infill, /completion, /tokenize         as llama-server's: llama.vim, llama.vscode
    POST /api/generate, /api/chat                as Ollama's
    POST /v1/fim/completions                     as Mistral's
    GET  /v1/models, /props, /slots, /health, /metrics

    The text is the model's own, until it ends, a stop text comes or a limit. Requests may have
    more fields: "workspace" (one of --workspace), "path" in it, "language", and "verbatim": false
    for what an editor would suggest there.

    Without keys, only programs of this machine are answered. For a team's server:

    \b
      openssl rand -hex 32 > codespec.key
      codespec daemon http --host 0.0.0.0 --key-file codespec.key

    and clients send "Authorization: Bearer KEY". There is no encryption here: beyond a network that
    you trust, put a proxy with TLS before it, or come through ssh -L 8012:localhost:8012 SERVER.
    """
    # The web server is loaded for this command alone.
    from codespec.http.access import Access, listen, read_named_keys
    from codespec.http.access_log import AccessLog
    from codespec.http.server import serve

    settings = load_settings()
    keys = read_named_keys(key_file) if key_file else {}
    access = Access(tuple(keys), workspaces, tuple(keys.values()))
    access_log = AccessLog(log_to) if log_to else None
    listener = listen(host, port, access)
    address = listener.getsockname()
    click.echo(f"http://{f'[{host}]' if ':' in host else host}:{address[1]}")
    for workspace in workspaces:
        click.echo(f"workspace {workspace}")
    serve(settings, listener, access, access_log)


def _show_all(found: list[tuple[Address, StatusReport | None]], as_json: bool) -> None:
    if as_json:
        rows = [
            {"state": "unknown", "address": str(address)}
            if report is None
            else msgspec.to_builtins(report)
            for address, report in found
        ]
        print_json({"daemons": rows})
        return
    if not found:
        click.echo("none is running")
    for i, (address, report) in enumerate(found):
        if i:
            click.echo()
        if report is None:
            click.echo("does not answer this version of codespec")
            click.echo(f"address   {address}")
        else:
            _print(report)


def show(report: StatusReport, as_json: bool, trouble: str | None = None) -> None:
    """Print a report. Exit code 1 for a daemon that cannot answer. trouble: of the model's server,
    asked just now, see `trouble_of`."""
    if as_json:
        print_json({**msgspec.to_builtins(report), "server_trouble": trouble})
    else:
        _print(report, trouble)
    if report.state == "failed":
        click.get_current_context().exit(1)


def _print(report: StatusReport, trouble: str | None = None) -> None:
    # The daemon knows of it from the next request on.
    reason = report.reason or trouble
    click.echo(f"{report.state}{f': {reason}' if reason else ''}")
    if report.hint:
        click.echo(f"  {report.hint}")
    if report.state == "failed":
        click.echo("  The model of your settings: codespec daemon restart; another: start --model")
    if report.model:
        where = f"{report.backend} ({report.model_path})" if report.backend else "not asked yet"
        click.echo(f"model     {report.model}, {where}")
        figures = report.figures
        if figures.n_ctx:
            fills_in = figures.fim_prompt or ("yes" if figures.fills_in else "no")
            click.echo(
                f"          {figures.n_ctx} tokens of context; fills in the middle: {fills_in}"
            )
        if decodes_by_itself(report.model_path):
            click.echo(
                "          it decodes by itself: nothing is drafted for it here, and\n"
                "          completion.eagerness goes by length and habits"
            )
    if trouble is not None:
        click.echo(f"server    asked just now: {trouble or 'it answers'}")
    click.echo(f"daemon    {report.version}, process {report.pid}, up {report.uptime_s:.0f} s")
    if report.worker_pid:
        memory = f", {report.memory_bytes / 1e6:.0f} MB" if report.memory_bytes else ""
        click.echo(f"worker    process {report.worker_pid}{memory}")
    if report.n_respawns:
        click.echo(f"restarts  {report.n_respawns}, the last one: {report.last_end}")
    click.echo(f"clients   {report.n_clients}, {report.n_requests} requests answered")
    edits = report.next_edits
    if edits.n_asked:
        click.echo(
            f"edits     {edits.n_proposed} of {edits.n_asked} times a next edit was proposed; "
            f"{edits.n_made} made, {edits.n_dismissed} dismissed"
        )
        for key, n in sorted(edits.why_none.items(), key=lambda of: (-of[1], of[0])):
            click.echo(f"          {n} none: {NoNextEdit(key).text}")
    click.echo(f"address   {report.address}")
    click.echo(f"log       {report.log}")
