"""All commands and their options, from the command line's own definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from codespec.cli import main

_BENCH = "codespec bench"


def sections() -> str:
    """A section for each command, and a table of the benchmarks, in Markdown."""
    found = list(commands())
    of_bench = [(p, c) for p, c in found if p.startswith(_BENCH)]
    rows = [f"| `{p}` | {_escaped(c.get_short_help_str(200))} |" for p, c in of_bench]
    others = [_section(p, c) for p, c in found if not p.startswith(_BENCH)]
    bench = "\n".join([f"### {_BENCH}", "", "| command | |", "|---|---|", *rows])
    return "\n\n".join([*others, bench])


def commands() -> Iterator[tuple[str, click.Command]]:
    """(its words, it) of each command that is no group alone, in the order of `--help`."""
    yield from _below("codespec", main)


def _below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _below(f"{path} {name}", found)


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"### {path}", f"`{usage}`", *_paragraphs(command.help or "")]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        parts.append("\n".join(["| option | |", "|---|---|", *map(_row, options)]))
    return "\n\n".join(parts)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        yield _escaped(" ".join(paragraph.split()))


def _row(option: click.Option) -> str:
    names = ", ".join(option.opts)
    if option.secondary_opts:
        names = f"{names} / {', '.join(option.secondary_opts)}"
    value = _value(option)
    shown = f"{names} {value}" if value else names
    return f"| `{_in_cell(shown)}` | {_escaped(' '.join((option.help or '').split()))} |"


def _value(option: click.Option) -> str:
    """The word for an option's value; "" for a flag."""
    if option.is_flag or option.count:
        return ""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    for kind, word in _WORDS:
        if isinstance(option.type, kind):
            return word
    return "TEXT"


_WORDS: tuple[tuple[type[click.ParamType[Any]], str], ...] = (
    (type(click.INT), "N"),
    (type(click.FLOAT), "X"),
    (click.Path, "PATH"),
    (click.File, "FILE"),
)


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text as Markdown that shows it as it is."""
    return re.sub(r"(`[^`]*`)|([*_<>|\[\]])", lambda m: m[1] or f"\\{m[2]}", text)
