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
def command(backend: str | None) -> None:
    """Build llama.cpp for this machine, once, with progress.

    It fetches llama-cpp-python's source and CMake, and nothing else, by pip, with the hashes that
    come with codespec. Needs a C++ compiler, and for a GPU its SDK; `codespec doctor` says what is
    missing.
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
        return
    wanted = backend or accelerators.chosen(llama_place.built())
    with ending_in_order():
        place = llama_place.build(wanted, click.echo)
    click.echo(f"llama.cpp ({wanted}) is ready: {place}")
