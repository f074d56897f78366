"""A model on a server in Neovim, by the user's own settings file: it answers, it fails, the model
here answers meanwhile, and the status says so."""

from __future__ import annotations

from itertools import count

from tests.scripted_server import completion, models, scripted_server

from .conftest import PATIENT, Desk, Start
from .install import Neovim
from .test_suggestions import CODE, OPEN

ROUTE = "/v1/completions"


def test_a_server_fails_and_comes_back(newest: Neovim, own_desk: Desk, start: Start) -> None:
    routes = {"/v1/models": models(), ROUTE: completion(["'from the server') as f:\n"])}
    with scripted_server(routes) as server:
        config = own_desk.path / "CONFIG" / "codespec" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[model]\ntarget = "{server.url}"\nfallback = "bundled"\n')
        editor = start(newest, own_desk, PATIENT)
        editor.open(own_desk.file("a.py", CODE))
        assert editor.wait_for_status("ready") == "qwen2.5-coder"
        editor.type(OPEN)
        editor.wait(lambda frame: "from the server" in editor.suggested)
        assert "def read_file(path):" in server.asked(ROUTE)[-1]["prompt"]

        server.routes[ROUTE] = lambda exchange: exchange.answer({}, 500)
        editor.type(f"<Esc>u{OPEN}x")
        editor.wait_for(lambda: "local model until it does" in editor.status()["message"])
        assert editor.status()["kind"] == "ready"
        told = "qwen2.5-coder; the server does not work: local model until it does"
        assert editor.status()["message"] == told
        editor.type("<Esc>u:e! b.py<CR>")
        editor.open(own_desk.file("b.py", CODE))
        editor.type(OPEN)
        assert editor.wait_for_ghost().ghost
        assert "from the server" not in editor.suggested

        server.routes[ROUTE] = completion(["'from the server') as f:\n"])

        numbers = count()

        def is_back() -> bool:
            """It is tried again by a request, once its pause is over."""
            editor.type("<Esc>u")
            editor.type(f"{OPEN}v{next(numbers)}")
            editor.idle()
            return editor.status()["message"] == "qwen2.5-coder"

        editor.wait_for(is_back, lambda: str(editor.status()))
