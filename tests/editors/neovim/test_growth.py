"""Suggestions that grow while they are shown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests import scripted_daemon

from .conftest import Desk, Start
from .install import Neovim
from .test_suggestions import TAB


@pytest.fixture
def slow_desk(own_desk: Desk) -> Iterator[Desk]:
    """With a model that has a line at once, and the others when its time is over."""
    daemon = subprocess.Popen(
        [sys.executable, scripted_daemon.SCRIPT, "ok"],
        env={**os.environ, **own_desk.env}, cwd=own_desk.path,
    )  # fmt: skip
    try:
        yield own_desk
    finally:
        daemon.terminate()
        daemon.wait()


def test_what_is_shown_grows_while_the_model_goes_on(
    neovim: Neovim, slow_desk: Desk, start: Start
) -> None:
    limits = "settings={completion={deadline_auto_ms=4000, linger_ms=1000}}"
    editor = start(neovim, slow_desk, limits)
    editor.lua(TAB)
    editor.open(slow_desk.file("a.py", ""))
    editor.wait_for_status("ready")
    editor.type("itell")
    editor.wait_for(lambda: editor.suggested == "one", lambda: editor.suggested)
    editor.type("o")
    editor.wait_for(lambda: editor.suggested == "ne", lambda: editor.suggested)
    grown = editor.wait(lambda frame: "three" in "\n".join(frame.lines))
    assert editor.suggested == "ne\ntwo\nthree"
    assert [line.rstrip() for line in grown.lines[:3]] == ["tellone", "two", "three"]
    editor.type("<Tab>")
    editor.wait_for(lambda: editor.text.startswith("tellone\ntwo\nthree"), lambda: editor.text)


def test_what_is_shown_when_a_key_takes_it_is_taken_however_it_grows_meanwhile(
    newest: Neovim, slow_desk: Desk, start: Start
) -> None:
    """Text is locked while a mapping is evaluated, and the server may be heard before it is not."""
    limits = "settings={completion={deadline_auto_ms=1000, linger_ms=500}}"
    editor = start(newest, slow_desk, limits)
    editor.lua("""
      local client = require('codespec.client')
      local grown = client.on_grown
      client.on_grown = function(id, item)
        vim.keymap.set('i', '<F5>', function()
          vim.schedule(function() grown(id, item) end)
          return require('codespec').accept() and '' or '<F5>'
        end, { expr = true })
      end""")
    editor.open(slow_desk.file("a.py", ""))
    editor.wait_for_status("ready")
    editor.type("itell")
    editor.wait_for(lambda: editor.suggested == "one", lambda: editor.suggested)
    editor.wait_for(lambda: bool(editor.lua("return vim.fn.maparg('<F5>', 'i') ~= ''")))
    editor.type("<F5>")
    editor.wait_for(lambda: editor.text.startswith("tellone"), lambda: editor.text)
    editor.wait_for(lambda: editor.suggested == "\ntwo\nthree", lambda: editor.suggested)
