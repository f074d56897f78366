"""Suggestions that are waited for or shown while the model is at them, and what ends that."""

from __future__ import annotations

import asyncio

import pytest

from codespec_lsp.positions import DocumentPlace
from codespec_lsp.suggestions.answers import Answer
from tests.typist import Typing, moments


async def waits_for_the_third(typing: Typing) -> asyncio.Task[Answer]:
    """The request for a third suggestion, which has a line by now, of a user who accepted two."""
    await typing.take(await typing.typed("a"))
    typing.free.clear()
    await typing.take(await typing.ask())
    request = await typing.waiting()
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


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["goes on", "typed along", "other text", "closed", "switched off"])
async def test_nobody_is_told_more_of_what_is_not_shown_any_more(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    typing = Typing(monkeypatch, grows=True, deadline_auto_ms=40)
    typing.free.clear()
    request = await typing.waiting("a")
    typing.say("one\ntw")
    assert [offer.edit.text for offer in (await request).offers] == ["one"]
    typing.say("one\ntwo\nth")
    if how == "typed along":
        typing.insert("o")
    elif how == "other text":
        typing.insert("()")
    elif how == "closed":
        typing.session.closed(typing.document.uri)
    elif how == "switched off":
        typing.switch_off()
    await asyncio.sleep(0.1)  # lines that come together are told of together
    assert typing.grown == (["one\ntwo"] if how in ("goes on", "typed along") else [])
    await typing.session.close()


@pytest.mark.asyncio
async def test_what_is_typed_along_goes_on_where_the_editor_closes_brackets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch, deadline_auto_ms=40)
    typing.free.clear()
    request = await typing.waiting("a")
    typing.say(" = b(c[d])\ne")
    assert (await request).offers
    typing.insert(" = b()")  # and the cursor goes back before what was closed
    typing.document.edited = DocumentPlace(1, len("a = b("))
    typing.insert("c[]")
    await moments()
    assert not typing.ended
    (offer,) = (await typing.ask(n_back=1)).offers
    assert offer.edit.text == "d])"
    assert typing.asked == ["a"]
    # Other brackets are another text.
    typing.insert("{}")
    await moments()
    assert typing.ended == ["a"]
    await typing.session.close()


@pytest.mark.asyncio
async def test_who_switches_suggestions_off_is_shown_none_that_was_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    typing.free.clear()
    request = await typing.waiting("a")
    typing.say("one\ntw")
    typing.switch_off()
    assert not (await request).offers
    await typing.session.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("grows", [True, False])
async def test_the_model_goes_on_with_what_a_wrong_key_cut_short(
    monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    typing = Typing(monkeypatch, grows=grows, deadline_auto_ms=400)
    typing.free.clear()
    request = await typing.waiting("a")
    typing.say("one\ntw")
    await request
    await typing.typed_wrongly("x")
    assert typing.ended == ["a", "ax"]
    # What there is comes at once, and is known further on.
    answer = await asyncio.wait_for(typing.ask(), 0.05)
    assert ([offer.edit.text for offer in answer.offers], answer.cached) == (["one"], True)
    await moments()
    assert typing.asked == ["a", "ax", "a"]
    typing.say("o")  # again
    typing.insert("o")
    typing.say("one\ntwo\nth")
    await asyncio.sleep(0.1)
    assert typing.grown == (["one\ntwo"] if grows else [])
    assert [offer.edit.text for offer in (await typing.ask()).offers] == ["ne\ntwo"]
    assert typing.asked == ["a", "ax", "a"]
    assert typing.ended == ["a", "ax"]
    await typing.session.close()


@pytest.mark.asyncio
async def test_nothing_is_asked_again_where_a_suggestion_was_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    await typing.typed("a")
    await typing.typed_wrongly("x")
    assert [offer.edit.text for offer in (await typing.ask()).offers] == ["zzz\n"]
    assert typing.asked == ["a", "ax"]
    await typing.session.close()


@pytest.mark.asyncio
async def test_who_asks_for_several_is_not_given_what_was_cut_short_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    typing.free.clear()
    request = await typing.waiting("a", invoked=True)
    typing.say("one\ntw")
    typing.insert("()")
    await request
    typing.delete(2)
    typing.free.set()
    offers = (await typing.ask(invoked=True)).offers
    assert [offer.edit.text for offer in offers] == ["one", "zzz\n"]
    await typing.session.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["goes on", "typed along", "taken", "other text", "prefetch off"])
async def test_what_comes_after_one_that_grew_is_begun_when_that_is_all_there(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    typing = Typing(monkeypatch, grows=True, deadline_auto_ms=40, prefetch=how != "prefetch off")
    request = await waits_for_the_third(typing)
    (offer,) = (await request).offers
    assert offer.edit.text == "one"
    if how == "typed along":
        typing.insert("one")
    elif how == "taken":
        await typing.take(await request)
        request = asyncio.ensure_future(typing.ask())  # the rest
    elif how == "other text":
        typing.insert("()")
    await moments()
    assert typing.asked == ["a", "", ""]
    typing.finish("one\ntwo\n")
    await moments()
    goes_on = how in ("goes on", "typed along", "taken")
    assert typing.asked == ["a", "", "", *([""] if goes_on else [])]
    await asyncio.sleep(0.1)  # lines that come together are told of together
    expected = ["one\ntwo\n"] if how in ("goes on", "typed along", "prefetch off") else []
    assert typing.grown == expected
    if how == "typed along":  # what is read
        typing.insert("x")
        await moments()
        assert typing.ended == [""]
    await request
    await typing.session.close()


@pytest.mark.asyncio
async def test_who_takes_what_was_shown_before_suggestions_were_switched_off_asks_for_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typing = Typing(monkeypatch)
    answer = await typing.typed("a")
    typing.switch_off()
    await typing.take(answer)
    assert typing.asked == ["a"]
    await typing.session.close()
