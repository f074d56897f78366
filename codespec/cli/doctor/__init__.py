"""`codespec doctor`"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from codespec.cli import json_option, model_options, model_settings, print_json, printable
from codespec.cli.doctor.findings import Finding, Level
from codespec.config import Settings, load_settings
from codespec.documents.from_disk import workspace_of
from codespec.errors import CodespecError
from codespec.system import programs

_MARKS: dict[Level, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("warn", "yellow"),
    "error": ("FAIL", "red"),
}


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True), default=".")
@model_options
@click.option("--quick", is_flag=True, help="Do not load the model to measure its speed.")
@json_option
def command(
    path: Path, model: str | None, draft_model: str | None, quick: bool, as_json: bool
) -> None:
    """Look for what keeps completion from working well, and say what to do about it.

    PATH is a workspace, or a file in one, whose exclusion is explained, too. Exit code 1 where
    something does not work, 0 otherwise, warnings included.
    """
    findings = examine(path, model_settings(model, draft_model), measure=not quick)
    if as_json:
        print_json({"findings": [msgspec.to_builtins(f) for f in findings]})
    else:
        for finding in findings:
            mark, colour = _MARKS[finding.level]
            said = printable(finding.message)
            click.echo(f"{click.style(f'{mark:>4}', fg=colour)}  {finding.area}: {said}")
            if finding.next_step:
                click.echo(f"      {printable(finding.next_step)}")
    if any(f.level == "error" for f in findings):
        click.get_current_context().exit(1)


def examine(path: Path, options: dict[str, dict[str, object]], *, measure: bool) -> list[Finding]:
    """Findings of all checks, in order; a check that cannot be made is a finding."""
    from codespec.cli.doctor import checks

    workspace = workspace_of(path / "any" if path.is_dir() else path)
    programs.never_below(workspace)
    try:
        settings = load_settings(options)
    except CodespecError as e:
        found = checks.build(Settings())
        return [*found, Finding("settings", "error", e.message, e.hint)]
    found = list(checks.build(settings))
    found += checks.settings_in_force(settings, options)
    tokenizer = ""
    if not any(f.level == "error" for f in found):
        from codespec.cli.doctor import edit_model_checks, model_checks

        of_model, tokenizer = model_checks.check(settings, measure=measure)
        found += of_model
        found += edit_model_checks.check(settings)
    found += checks.folders()
    found += checks.index(settings, workspace, tokenizer)
    found += checks.daemon(settings)
    found += checks.next_edits(settings)
    found += checks.editors()
    found += checks.rules(settings, workspace, None if path.is_dir() else path)
    return found
