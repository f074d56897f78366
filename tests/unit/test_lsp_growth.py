"""Suggestions that are waited for or shown while the model is at them, and what ends that."""

from __future__ import annotations

import asyncio

import pytest

from codespec_lsp.answers import Answer
from tests.typist import Typing, moments


async def waits_for_the_third(typing: Typing) -> asyncio.Task[Answer]:
    """Of a user who took two, the request for another one that has a line by now."""
    await typing.take(await typing.typed("a"))
    typing.free.clear()
    await typing.take(await typing.ask())
    request = asyncio.ensure_future(typing.ask())
    await moments()
    typing.say("one\ntw")
    assert typing.asked == ["a", "", ""]
    return request


@pytest.mark.asyncio
async def test_a_document_that_is_closed_is_asked_about_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    request = await waits_for_the_third(typing)
    typing.session.closed(typing.document.uri)
    assert not (await request).offers
    await moments()
    assert typing.asked == ["a", "", ""]
    await typing.session.close()


@pytest.mark.asyncio
async def test_who_types_another_text_while_a_request_waits_takes_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    request = await waits_for_the_third(typing)
    typing.insert("()")
    await request
    await moments()
    assert typing.asked == ["a", "", ""]
    await typing.session.close()
