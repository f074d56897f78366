"""`codespec models`, called as on a command line."""

from __future__ import annotations

from click.testing import CliRunner, Result

from codespec.cli import main


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["models", *map(str, args)])


def ok(*args: object) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout
