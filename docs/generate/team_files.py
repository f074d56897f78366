"""The files of docs/team, as the page about them shows them."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "codespec-vllm@.service": ("/etc/systemd/system/codespec-vllm@.service", "ini"),
    "vllm.env": ("/etc/codespec/vllm.env", "ini"),
    "haproxy.cfg": ("/etc/haproxy/haproxy.cfg", "text"),
}
"""File -> (place on the server, language)."""
_FOLDER = Path(__file__).parents[1] / "team"


def blocks() -> str:
    """A block of code for each file, below its place."""
    parts: list[str] = []
    for name, (place, language) in FILES.items():
        text = (_FOLDER / name).read_text("utf-8").strip()
        parts.append(f"[`{place}`](team/{name}):\n\n```{language}\n{text}\n```")
    return "\n\n".join(parts)
