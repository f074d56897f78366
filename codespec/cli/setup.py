"""`codespec setup`"""

from __future__ import annotations

import sys

import click

from codespec.errors import InputError
from codespec.system import accelerators, llama_place
from codespec.system.processes import ending_in_order


@click.command()
@click.option(
    "--backend",
    type=click.Choice(accelerators.NAMES),
    help="Hardware that computes models (default: CODESPEC_BACKEND, else the GPU that it was built "
    "for, else what is here).",
)
@click.option(
    "--remove-unused",
    is_flag=True,
    help="Remove other builds of it that no codespec of yours uses.",
)
def command(backend: str | None, remove_unused: bool) -> None:
    """Build llama.cpp for this machine, once, with progress.

    It fetches llama-cpp-python's source and CMake, and nothing else, by pip, with the hashes that
    come with codespec. Needs a C++ compiler, and for a GPU its SDK; `codespec doctor` says what is
    missing. Builds for earlier versions stay until you have them removed.
    """
    if llama_place.is_in_environment():
        if backend is not None:
            raise InputError(
                f"the environment {sys.prefix} has llama-cpp-python {llama_place.VERSION}, which "
                "goes before what is built here",
                f"In a checkout: CODESPEC_BACKEND={backend} make env. Elsewhere remove it: "
                "pip uninstall llama-cpp-python",
            )
        click.echo(f"llama-cpp-python {llama_place.VERSION} is installed: there is nothing to do")
        _tell_of_others(remove_unused)
        return
    wanted = backend or accelerators.chosen(llama_place.built())
    with ending_in_order():
        place = llama_place.build(wanted, click.echo)
    click.echo(f"llama.cpp ({wanted}) is ready: {place}")
    _tell_of_others(remove_unused)


def _tell_of_others(remove_unused: bool) -> None:
    """Name the builds that this installation does not use, and remove those that none does."""
    others = llama_place.others()
    for other in others:
        what = f"{other.folder} ({other.n_bytes / 1e6:.0f} MB)"
        if other.users:
            click.echo(f"also there: {what}, used by {', '.join(map(str, other.users))}")
        elif not other.is_known:
            click.echo(f"also there: {what}, which does not say what uses it")
        elif remove_unused:
            other.remove()
            click.echo(f"removed: {what}")
        else:
            click.echo(f"also there: {what}, used by no codespec of yours")
    if not remove_unused and any(other.is_unused for other in others):
        click.echo("To remove what none uses: codespec setup --remove-unused")
