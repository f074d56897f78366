"""Asks with LiteLLM, which the Python that runs this has: ask_litellm.py CODE_URL CHAT_URL.

The question, as JSON, comes on standard input, and the texts of the answers go to standard output.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

# Else it fetches prices of models from the internet.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # pyright: ignore[reportMissingImports]

code_url, chat_url = sys.argv[1:]
question = json.load(sys.stdin)
found: dict[str, str] = {}


def asked(name: str, ask: Callable[..., Any], **fields: Any) -> None:
    """Note the texts of an answer, whole and streamed."""
    for is_streamed in (False, True):
        try:
            answer = ask(**fields, max_tokens=question["n"], stream=is_streamed)
            parts = answer if is_streamed else [answer]
            text = "".join(text_of(part.choices[0]) for part in parts)
        except Exception as e:
            text = f"error: {e}"
        found[f"{name}, streamed" if is_streamed else name] = text


def text_of(choice: Any) -> str:
    for name in ("message", "delta"):
        if (said := getattr(choice, name, None)) is not None:
            return said.content or ""
    return choice.text or ""


for name, where in (
    ("text-completion-openai", f"{code_url}/v1"),
    ("text-completion-codestral", f"{code_url}/v1/fim/completions"),
):
    asked(
        name,
        litellm.text_completion,
        model=f"{name}/any",
        api_base=where,
        api_key="any",
        prompt=question["prompt"],
        suffix=question["suffix"],
    )
asked(
    "ollama",
    litellm.text_completion,
    model="ollama/any",
    api_base=code_url,
    prompt=question["fim"],
)
for name, where in (("openai", f"{chat_url}/v1"), ("ollama_chat", chat_url)):
    asked(
        f"chat: {name}",
        litellm.completion,
        model=f"{name}/any",
        api_base=where,
        api_key="any",
        messages=question["messages"],
    )
print(json.dumps(found))
