"""Neovim with the bundled model on real servers, by the user's own settings file."""

from __future__ import annotations

import pytest

from tests.editors.neovim import conftest
from tests.editors.neovim.conftest import PATIENT, Desk, Start
from tests.editors.neovim.install import Neovim
from tests.editors.neovim.test_suggestions import CODE, OPEN, TAB

from .conftest import MODEL

# Its fixtures, for this file alone.
editors, measured_costs = conftest.editors, conftest.measured_costs
newest, own_desk, start = conftest.newest, conftest.own_desk, conftest.start


@pytest.mark.parametrize("kind", ["llama-server", "vLLM"])
def test_an_editor_is_served(
    kind: str,
    request: pytest.FixtureRequest,
    newest: Neovim,
    own_desk: Desk,
    start: Start,
) -> None:
    if kind == "vLLM":
        url = f"http://127.0.0.1:{request.getfixturevalue('port')}/v1"
    else:
        url = request.getfixturevalue("llama")
    config = own_desk.path / "CONFIG" / "codespec" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[model]\ntarget = "{url}"\n[server]\ntokenizer = "{MODEL}"\n')
    editor = start(newest, own_desk, PATIENT)
    editor.lua(TAB)
    editor.open(own_desk.file("a.py", CODE))
    assert editor.wait_for_status("ready")
    editor.type(OPEN)
    editor.wait_for_ghost()
    said = editor.suggested
    # Typed through, then accepted.
    editor.type(said[0])
    editor.idle()
    editor.wait(lambda frame: bool(frame.ghost) and editor.suggested == said[1:])
    typed = editor.text
    editor.type("<Tab>")
    editor.wait_for(lambda: editor.text != typed)
    assert f"open({said}" in editor.text
    # Another place, asked anew.
    editor.type("<Esc>Go<CR>def other():<CR>with open(")
    assert editor.wait_for_ghost().ghost
