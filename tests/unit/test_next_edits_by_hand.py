"""Next edits that are made by hand, there or elsewhere: whoever types an edit agrees with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from codespec.config import Settings
from codespec.edits.repeats import Repeats
from codespec.engine.editable_texts import EditableTexts
from codespec.engine.next_edits import NextEditFinder
from codespec.next_edit import Dismissed, NextEditRequest, NextEdits
from codespec_lsp.documents import Document
from codespec_lsp.next_edits.next_edit_session import EditAsk, EditOffer, NextEditSession
from codespec_lsp.positions import DocumentPlace
from tests.editors.typist import calls

N = 12


class Window:
    """One editor window, with a document that the daemon's own finder looks at. Whatever is
    proposed is shown."""

    def __init__(self, folder: Path, text: str, n_eager: str = "high") -> None:
        self.path = folder / "calls.py"
        self.path.write_text(text)
        self.document = Document(self.path.as_uri(), "python", 1, text)
        self._finder = NextEditFinder(EditableTexts(lambda root: None), Repeats())
        documents: Mapping[str, Document] = {self.document.uri: self.document}
        self._session = NextEditSession(self._find, documents, lambda: "utf-32")
        settings = {"edits": {"eagerness": n_eager}, "stats": {"enabled": False}}
        self._session.configure(msgspec.convert(settings, Settings))
        self.dismissed: tuple[Dismissed, ...] = ()
        self.ask(0)

    @property
    def lines(self) -> list[str]:
        return self.document.text.split("\n")

    @property
    def outcomes(self) -> tuple[int, int]:
        return self._finder.outcomes()

    async def _find(self, request: NextEditRequest, with_model: bool = False) -> NextEdits:
        self.dismissed = request.dismissed
        return self._finder.find(request)

    def replace(self, line: int, old: str, new: str) -> None:
        """One change of the editor, without a question."""
        start = self.lines[line].index(old)
        begin, end = DocumentPlace(line, start), DocumentPlace(line, start + len(old))
        self.document.replace(begin, end, new, "utf-32")
        self.document.version += 1
        self._session.changed(self.document)

    def accept(self, offer: EditOffer, says: bool = True) -> None:
        """says: the editor tells of it, beside the text."""
        line = offer.place.start.line
        self.replace(line, self.lines[line], offer.edit.edit.text)
        if says:
            self._session.accepted(offer.id, lambda uri: None)

    def ask(self, line: int) -> EditOffer | None:
        text, document = self.document.text, self.document
        cursor = sum(len(each) + 1 for each in self.lines[:line])
        question = EditAsk(
            document.uri,
            str(self.path),
            str(self.path.parent),
            "python",
            document.version,
            text,
            cursor,
            line,
            everywhere=True,
        )
        offers = asyncio.run(self._session.propose(question)).offers
        for offer in offers:
            self._session.shown(offer.id)
        return offers[0] if offers else None

    def type(self, line: int, old: str, new: str) -> EditOffer | None:
        """A change, and the question after it."""
        self.replace(line, old, new)
        return self.ask(line)


def spaced(n: int, n_between: int) -> str:
    return calls(n).replace("\n", "\n" + "# about it\n" * n_between)


@pytest.mark.parametrize("n_between", [0, 1, 3])
def test_a_change_made_line_by_line_by_hand_is_proposed_after_each(
    tmp_path: Path, n_between: int
) -> None:
    window = Window(tmp_path, spaced(N + 1, n_between))
    step = n_between + 1
    for i in range(N):
        offer = window.type(i * step, "load(", "loadp(")
        assert offer is not None, i
        assert offer.edit.edit.text.endswith(f"= loadp(folder, {offer.place.start.line // step})")
        assert window.dismissed == ()
    assert window.outcomes[1] == 0


def test_a_name_typed_key_by_key_in_the_next_line_is_no_dismissal(tmp_path: Path) -> None:
    window = Window(tmp_path, spaced(8, 3))
    window.type(0, "load", "fetch")
    for line in (4, 8):
        for keys in ("loa", "lo", "l", "", "f", "fe", "fet", "fetc", "fetch"):
            at = window.lines[line]
            old = at[at.index("= ") + 2 : at.index("(")]
            window.replace(line, f"= {old}(", f"= {keys}(")
            window.ask(line)
            assert window.dismissed == ()
    assert window.ask(8) is not None


def test_another_change_elsewhere_is_a_dismissal(tmp_path: Path) -> None:
    window = Window(tmp_path, spaced(8, 3))
    offer = window.type(0, "load(", "loadp(")
    assert offer is not None
    other = 4 if offer.place.start.line != 4 else 8
    window.type(other, "folder", "folders")
    assert [each.text for each in window.dismissed] == [offer.edit.edit.text]


def test_a_beginning_that_becomes_something_else_is_a_dismissal(tmp_path: Path) -> None:
    window = Window(tmp_path, spaced(8, 3))
    offer = window.type(0, "load(", "fetch(")
    assert offer is not None
    window.replace(4, "load(", "f(")
    window.ask(4)
    assert window.dismissed == ()
    window.replace(4, "f(", "find(")
    window.ask(4)
    assert offer.edit.edit.text in [each.text for each in window.dismissed]


def test_a_dismissed_edit_that_is_made_by_hand_counts_as_made(tmp_path: Path) -> None:
    window = Window(tmp_path, spaced(8, 3))
    offer = window.type(0, "load(", "loadp(")
    assert offer is not None
    line = offer.place.start.line
    other = 4 if line != 4 else 8
    window.type(other, "folder", "folders")
    assert window.dismissed
    assert window.outcomes == (0, 1)
    window.type(line, "load(", "loadp(")
    assert offer.edit.edit.text not in [each.text for each in window.dismissed]
    assert window.outcomes[0] == 1


def test_lines_that_say_the_same_elsewhere_make_no_dismissal_of_a_half_typed_edit(
    tmp_path: Path,
) -> None:
    window = Window(tmp_path, "".join(f"# {i}\nuse(load(folder))\n" for i in range(6)))
    offer = window.type(1, "load", "fetch")
    assert offer is not None
    window.replace(offer.place.start.line, "load", "fetc")
    window.ask(offer.place.start.line)
    assert window.dismissed == ()


@pytest.mark.parametrize("says", [True, False])
def test_an_accepted_edit_that_is_undone_is_not_proposed_again_there(
    tmp_path: Path, says: bool
) -> None:
    window = Window(tmp_path, spaced(8, 3))
    undone: list[tuple[int, str, str]] = []
    offer = window.type(0, "load(", "loadp(")
    for _ in range(2):
        assert offer is not None
        line = offer.place.start.line
        undone.append((line, offer.edit.edit.text, window.lines[line]))
        window.accept(offer, says)
        offer = window.ask(line)
    for line, new, old in reversed(undone):
        offer = window.type(line, new, old)
        assert offer is None or offer.place.start.line not in (0, line)
    assert [each.text for each in window.dismissed] == [new for _, new, _ in reversed(undone)]
    line, new, old = undone[0]
    window.type(line, old, new)
    assert new not in [each.text for each in window.dismissed]
