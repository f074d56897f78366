"""Text that a document lends to others while a secret is typed in it."""

from __future__ import annotations

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.documents.live import LiveDocument
from codespec.rules.secrets import find

BEFORE = "import os\n\n\ndef connect(host):\n    return os.open(host)\n\n\n"
TOKEN = "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"


def lends(document: LiveDocument, token: str) -> bool:
    """True if it lends this token, as text or as drafts."""
    tokenizer = ByteTokenizer()
    drafts = [automaton.draft(tokenizer.encode(token[:6]), 16, 4) for automaton in document.lent]
    return token in document.lent_text or any(len(drafted) for drafted in drafts)


@pytest.mark.parametrize("begun", ["URL = 'https://", "KEY = 'LTAI", "password = '", "f('ghp_"])
@pytest.mark.parametrize("after", ["", "'\n", TOKEN[20:] + "'\n"])
def test_a_secret_that_is_typed_is_lent_to_nobody(begun: str, after: str) -> None:
    document = LiveDocument(ByteTokenizer())
    for n in range(12, 20):
        document.update(f"{BEFORE}{begun}{TOKEN[:n]}", after)
        assert not lends(document, TOKEN[:n])
        assert "def connect(host)" in document.lent_text
        assert document.text == f"{BEFORE}{begun}{TOKEN[:n]}{after}"


def test_all_is_lent_where_nothing_of_the_kind_is_typed() -> None:
    document = LiveDocument(ByteTokenizer())
    text = f"{BEFORE}reconcile = connect('ledger')\n"
    assert not find(text)
    for at in (len(text), len(text) - 5, 20, 0):
        document.update(text[:at], text[at:])
        assert document.lent_text == text
        assert document.lent == (document.before, document.after)
