"""`codespec lsp`"""

from __future__ import annotations

import click


@click.command()
@click.option("--stdio", is_flag=True, help="Accepted for editors that always pass it.")
def command(stdio: bool) -> None:
    """Serve an editor over standard input and output (Language Server Protocol 3.18).

    Answers textDocument/inlineCompletion. Starts the daemon where none runs, or joins it: one
    model in memory serves all editor windows.
    """
    from codespec_lsp import run

    run()
