"""Prompts of models, for each FIM format they were trained with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from codespec.backends.fake import FIM_MIDDLE, FIM_PREFIX, FIM_SUFFIX, ByteTokenizer, FakeTarget
from codespec.context.prompt_window import Window, build_context
from codespec.context.snippets import render
from codespec.requests import CompletionRequest
from codespec.types import FileMarkers, FimOrder, FimTokens, Snippet
from tests.golden.golden import Case, check, read

TOKENIZER = ByteTokenizer()
REPOSITORY, FILE = 256, 260
NAMES = {
    FIM_PREFIX: "<prefix>", FIM_SUFFIX: "<suffix>", FIM_MIDDLE: "<middle>",
    REPOSITORY: "<repository>", FILE: "<file>",
}  # fmt: skip


ORDERS: dict[str, FimOrder] = {o: o for o in get_args(FimOrder)}
MARKERS = {
    "marked": FileMarkers(REPOSITORY, FILE),
    "marked-inside": FileMarkers(REPOSITORY, FILE, is_inside=True),
    "marked-alone": FileMarkers(file=FILE),
    "headed": FileMarkers(heading="+++++ ", is_inside=True),
}


def prompt(case: Case) -> dict[str, str]:
    order, path = case.options["order"], case.options.get("path", "/code/main.py")
    fim = None
    if order != "none":
        fim = FimTokens(FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, ORDERS[order])
        if "files" in case.options:
            fim = replace(fim, files=MARKERS[case.options["files"]])
    info = replace(FakeTarget().info, fim=fim, n_ctx=4096)
    prefix, suffix = case.cursor
    request = CompletionRequest(prefix, suffix, path=path, workspace="/code")
    snippets = tuple(files(case.given("files")))
    n = int(case.options.get("window", 1024))
    context = build_context(
        request,
        TOKENIZER.encode(prefix),
        TOKENIZER.encode(suffix),
        info,
        TOKENIZER,
        Window(n, n // 2),
        snippets,
        render(snippets, info, TOKENIZER, path, "/code"),
    )
    said = "".join(NAMES.get(t, TOKENIZER.piece(t).decode()) for t in context.prompt.tolist())
    return {"prompt": said, "healed": context.healed.decode()}


def files(given: str) -> list[Snippet]:
    """Each begins with its path."""
    found: list[list[str]] = []
    for line in given.split("\n") if given else []:
        if line.startswith("/"):
            found.append([line])
        else:
            found[-1].append(line)
    return [Snippet("symbols", path, "\n".join(lines)) for path, *lines in found]


CASES = read(Path(__file__).with_name("prompts.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_prompt(case: Case, update_golden: bool):
    check(case, prompt(case), update_golden)
