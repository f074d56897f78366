"""`codespec daemon start|stop|status|restart|logs`"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import msgspec

from codespec.cli import model_options, model_settings, print_json
from codespec.config import load_settings
from codespec.daemon import control
from codespec.daemon.wire import StatusReport

_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group()
def command() -> None:
    """The background process that holds the model: one for all editors of a user.

    Editors start it by themselves, and it ends after a while without them.
    """


def _wait_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--no-wait", is_flag=True, help="Return before the model is loaded.")(f)


@command.command()
@model_options
@_wait_option
@_json_option
def start(model: str | None, draft_model: str | None, no_wait: bool, as_json: bool) -> None:
    """Start it; where it runs, load another model if one is given."""
    settings = load_settings()
    if model is None and draft_model is None:
        _show(control.start(settings, wait_ready=not no_wait), as_json)
    else:
        chosen = load_settings(model_settings(model, draft_model)).model
        _show(control.switch_model(settings, chosen.target, chosen.draft), as_json)


@command.command()
@_json_option
def stop(as_json: bool) -> None:
    """End it and the model with it."""
    stopped = control.stop(load_settings())
    if as_json:
        print_json({"stopped": stopped})
    else:
        click.echo("stopped" if stopped else "it was not running")


@command.command()
@_json_option
def status(as_json: bool) -> None:
    """What it runs, and how it fares. Exit code 3 where it does not run."""
    report = control.status(load_settings())
    if report is not None:
        _show(report, as_json)
        return
    if as_json:
        print_json({"state": "stopped"})
    else:
        click.echo("not running; editors start it, or: codespec daemon start")
    click.get_current_context().exit(3)


@command.command()
@_wait_option
@_json_option
def restart(no_wait: bool, as_json: bool) -> None:
    """Stop it, then start it with the settings as they are now."""
    _show(control.restart(load_settings(), wait_ready=not no_wait), as_json)


@command.command()
@click.option("-n", "n_lines", type=click.IntRange(1), default=50, show_default=True)
def logs(n_lines: int) -> None:
    """The last lines of its log. The log holds no source text."""
    path, lines = control.logs(load_settings(), n_lines)
    click.echo(f"{path}:", err=True)
    for line in lines:
        click.echo(line)


def _show(report: StatusReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        click.echo(f"{report.state}{f': {report.reason}' if report.reason else ''}")
        if report.hint:
            click.echo(f"  {report.hint}")
        if report.model:
            click.echo(f"model     {report.model} on {report.backend} ({report.model_path})")
        click.echo(f"daemon    {report.version}, process {report.pid}, up {report.uptime_s:.0f} s")
        if report.worker_pid:
            memory = f", {report.memory_bytes / 1e6:.0f} MB" if report.memory_bytes else ""
            click.echo(f"worker    process {report.worker_pid}{memory}")
        click.echo(f"clients   {report.n_clients}, {report.n_requests} requests answered")
        click.echo(f"address   {report.address}")
        click.echo(f"log       {report.log}")
    if report.state == "failed":
        click.get_current_context().exit(1)
