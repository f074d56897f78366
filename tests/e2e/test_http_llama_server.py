"""llama-server's routes beside infill, and Tabby's, asked of the front as clients ask them."""

from __future__ import annotations

from contextlib import closing

from codespec.config import load_settings
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from tests.e2e.conftest import Home, report_of, until
from tests.http_client import Front, front_of, refusal

TEXT = "def add(a, b):\n    return"


def test_llama_servers_routes_and_tabbys(home: Home) -> None:
    with front_of(home.path) as front:
        until(lambda: front.ask("/health")[0] == 200)
        check_completions(front)
        check_vocabulary(front)
        check_what_is_told(front)
        check_what_tabby_asks(front, report_of(home.settings).model)


def check_completions(front: Front) -> None:
    """A completion of text, of tokens, and streamed is the same."""
    asked = {"n_predict": 64, "stop": ["no such text", "\n"], "temperature": 0.0}
    status, whole = front.ask("/completion", {**asked, "prompt": TEXT})
    assert status == 200
    assert whole["content"]
    assert (whole["stop_type"], whole["stopping_word"]) == ("word", "\n")
    assert whole["prompt"] == TEXT
    assert whole["generation_settings"]["n_ctx"] == load_settings().model.window(0)

    tokens = front.ask("/tokenize", {"content": TEXT, "add_special": True})[1]["tokens"]
    assert len(tokens) == whole["tokens_evaluated"]
    for prompt in (
        tokens,
        [*tokens[:2], front.ask("/detokenize", {"tokens": tokens[2:]})[1]["content"]],
    ):
        found = front.ask("/completions", {**asked, "prompt": prompt})[1]
        assert found["content"] == whole["content"]

    *parts, last = front.stream("/completion", {**asked, "prompt": TEXT})
    assert "".join(part["content"] for part in (*parts, last)) == whole["content"]
    assert [part["stop"] for part in (*parts, last)] == [*(False for _ in parts), True]
    assert last["stopping_word"] == "\n"

    several = front.ask("/completion", {**asked, "prompt": [TEXT, [*tokens]]})[1]
    assert [(said["index"], said["content"]) for said in several] == [
        (0, whole["content"]),
        (1, whole["content"]),
    ]
    refusal(front.ask("/completion", {"prompt": [1 << 29]}), 400, "token", "go up to")
    refusal(front.ask("/completion", {"prompt": TEXT * 2000}), 400, "tokens", "model.n_ctx")


def check_what_is_told(front: Front) -> None:
    """Nobody's text, and no folder."""
    secret = "unmistakable_name"
    front.ask("/completion", {"prompt": f"{secret} = ", "n_predict": 2})
    status, props = front.ask("/props")
    assert status == 200
    n_ctx = load_settings().model.window(0)
    assert props["default_generation_settings"]["n_ctx"] == n_ctx
    assert props["total_slots"] == 1
    assert props["model_path"] == bundled(BUNDLED_TARGET).name
    status, slots = front.ask("/slots")
    assert status == 200
    assert [(slot["id"], slot["n_ctx"], slot["is_processing"]) for slot in slots] == [
        (0, n_ctx, False)
    ]
    told = f"{props} {slots}"
    assert secret not in told
    assert "/" not in props["model_path"]
    for path in ("/v1/embeddings", "/embedding", "/rerank"):
        refusal(front.ask(path, {"input": "x"}), 501, "codespec")


def check_vocabulary(front: Front) -> None:
    pieces = front.ask("/tokenize", {"content": "é=<|fim_prefix|>", "with_pieces": True})[1]
    assert pieces["tokens"][-1]["piece"] == "<|fim_prefix|>"
    raw = [piece["piece"] for piece in pieces["tokens"][:-1]]
    assert b"".join(p.encode() if isinstance(p, str) else bytes(p) for p in raw).decode() == "é="
    refusal(front.ask("/apply-template", {"messages": [{"role": "user", "content": "x"}]}), 400)
    refusal(front.ask("/tokenize", {"content": 1}), 400, "content")


def check_what_tabby_asks(front: Front, model: str) -> None:
    health = front.ask("/v1/health")[1]
    assert (health["status"], health["model"]) == ("ok", model)
    assert health["chat_model"] is None
    setting = {"disable_client_side_telemetry": True}
    assert front.ask("/v1beta/server_setting") == (200, setting)
    event = {"type": "view", "completion_id": "x", "choice_index": 0}
    with closing(front.begin("/v1/events", event)) as connection:
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
    refusal(front.ask("/v1/events", {**event, "type": "other"}), 400, "type")
    segments = {"prefix": "def add(a, b):\n    return ", "suffix": "\n"}
    status, said = front.ask("/v1/completions", {"language": "python", "segments": segments})
    assert status == 200
    assert said["choices"][0]["text"].strip()
