"""Programs with keys of one HTTP server: none is lost, none shuts out the other, and none sees what
the other sent. (Single rules: `test_http_rules.py`, `test_http_front.py`.)"""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.e2e.conftest import Home, daemon_of, report_of
from tests.http_client import Front, front_of
from tests.reliability.amount import amount, tell

KEYS = ("a" * 32, "b" * 32)
N_AT_ONCE = 50
LENT = "def compute_total(first_item, second_item):\n    return first_item + second_item\n"
ASKED = "total = compute_total(first_item, "


@pytest.fixture
def options(home: Home) -> tuple[str, ...]:
    file = home.path / "keys"
    file.write_text("\n".join(KEYS))
    return ("--key-file", str(file), "--workspace", str(home.workspace))


@pytest.fixture
def scripted(home: Home, options: tuple[str, ...]) -> Iterator[Front]:
    """On a daemon whose engine does what the prompt says."""
    with daemon_of(home, "ok"), front_of(home.path, *options) as front:
        yield front


def test_a_flood_is_answered(scripted: Front, home: Home) -> None:
    """With an answer, or with word of too many; one client's flood leaves the other its share."""

    def ask(n: int) -> tuple[str, int]:
        # Of nine requests in ten the first client is the sender.
        key = KEYS[n % 10 == 0]
        body = {"prompt": "steps of 0.002 1", "max_tokens": 8}
        try:
            return key, replace(scripted, key=key).ask("/v1/completions", body)[0]
        except (http.client.HTTPException, OSError):
            return key, 0

    with ThreadPoolExecutor(N_AT_ONCE) as pool:
        found = Counter(pool.map(ask, range(amount(300))))
    assert {status for _, status in found} <= {200, 429, 503}
    assert all(found[key, 200] for key in KEYS)
    first, second = replace(scripted, key=KEYS[0]), replace(scripted, key=KEYS[1])
    assert first.text(prompt="on") == second.text(prompt="on") == "[on|]"
    assert report_of(home.settings).n_respawns == 0
    tell(
        answered=sum(n for (_, status), n in found.items() if status == 200),
        refused=sum(n for (_, status), n in found.items() if status != 200),
    )


def test_what_one_sent_is_no_part_of_what_another_gets(
    home: Home, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is its text drafted from, or found among the symbols of open documents."""
    monkeypatch.setenv("CODESPEC_CONTEXT_BUFFERS", "on")
    monkeypatch.setenv("CODESPEC_CONTEXT_SYMBOLS", "on")
    for name in ("lender.py", "one.py", "two.py"):
        (home.workspace / name).write_text("saved = 1\n")
    with front_of(home.path, *options) as front:
        first, second = (replace(front, key=key) for key in KEYS)

        def answer(client: Front, prompt: str, path: str) -> dict[str, object]:
            status, said = client.ask("/v1/completions", {"prompt": prompt, "path": path})
            assert status == 200
            usage = {key: said["usage"][key] for key in ("prompt_tokens", "completion_tokens")}
            return {"text": said["choices"][0]["text"], **usage}

        alone = answer(second, ASKED, "one.py")
        assert answer(first, LENT, "lender.py")["prompt_tokens"]
        for path in ("two.py", "one.py", "lender.py"):
            assert answer(second, ASKED, path) == alone
        assert "compute_total" not in json.dumps(front.ask("/health"))
