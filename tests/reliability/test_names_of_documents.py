"""A document is what an editor sends, whatever it calls it: nothing is read from where its name
leads to, and no name ends or hangs the server. (Paths over HTTP: `test_http_rules.py`.)"""

from __future__ import annotations

import errno
import os
import sys

import pytest

from tests.e2e.conftest import Home, Spawn, texts
from tests.rpc import LspClient

CANARY = "canary_in_a_file_elsewhere"
ODD = [
    "file:///etc/passwd",
    "file:///dev/zero",
    "file:///proc/self/mem",
    "file://localhost/etc/passwd",
    "file://server/share/a.py",
    "file:////server/share/a.py",
    "file:///c%3A/windows/a.py",
    "file:///w/../../../../etc/passwd",
    "file:///w/%2e%2e/%2e%2e/etc/passwd",
    "file:///w/..%2f..%2fetc%2fpasswd",
    "file:///w/a.py%00.txt",
    "file:///w/a%0ab.py",
    "file:///w/%1b%5b31m.py",
    "file:///w/%ff%fe.py",
    "file:///w/a.py?x=1#y",
    "file:",
    "file://",
    "file:///",
    "FILE:///w/A.py",
    "/etc/passwd",
    "a.py",
    "..",
    "",
    " ",
    "://",
    "untitled:Untitled-1",
    "vscode-remote://ssh-remote%2Bhost/w/a.py",
    "git:/w/a.py?%7B%22ref%22%3A%22~%22%7D",
    "http://127.0.0.1:1/a.py",
    "jar:file:///w/a.jar!/a.py",
    "data:text/plain,x",
    "file:///" + "a/" * 5_000 + "a.py",
    "file:///" + "%61" * 20_000,
    "file:///w/\ud800.py",
    "file:///w/a\u202eb.py",
]


def test_odd_names(scripted: LspClient) -> None:
    """In one session: none of them is in the way of the next."""
    for uri in ODD:
        scripted.open(uri, "x = 1\n")
        said = texts(scripted.complete(uri, 1, 0))
        assert said in (["[x = 1\n|]"], []), uri
        scripted.change(uri, 2, {"text": "y\n"})
        assert texts(scripted.complete(uri, 1, 0)) in (["[y\n|]"], []), uri
        close = {"textDocument": {"uri": uri}}
        scripted.notify("textDocument/didSave", close)
        scripted.notify("textDocument/didClose", close)
        assert scripted.complete(uri, 1, 0) == []
    scripted.open("file:///w/last.py", "z\n")
    assert texts(scripted.complete("file:///w/last.py", 1, 0)) == ["[z\n|]"]
    assert scripted.close() == 0
    assert "Traceback" not in scripted.stderr.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_nothing_is_read_from_where_a_name_leads_to(home: Home, spawn: Spawn) -> None:
    """With a model, and symbols, edits and other documents in prompts."""
    pipe, outside = home.path / "pipe.py", home.path / "outside.py"
    os.mkfifo(pipe)
    outside.write_text(f"{CANARY} = 1\n" * 40)
    (home.workspace / "in.py").symlink_to(outside)
    os.mkfifo(home.workspace / "pipe.py")
    editor = spawn()
    editor.initialize(home.workspace, options={"completion": {"deadline_invoked_ms": 30_000}})
    editor.wait_for_status("Normal", "ready")
    dots = "/".join([home.workspace.as_uri(), "..", "outside.py"])
    uris = [path.as_uri() for path in (pipe, outside, home.workspace / "in.py")]
    for uri in (*uris, (home.workspace / "pipe.py").as_uri(), dots):
        editor.open(uri, "canary_in_a")
        items = texts(editor.complete(uri, 0, 11))
        assert not any(text.startswith("_file_elsewhere") for text in items), uri
    for path in (pipe, home.workspace / "pipe.py"):
        # It fails as long as nobody reads it.
        with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    assert editor.close() == 0


def test_a_workspace_may_be_called_anything(home: Home, spawn: Spawn) -> None:
    for root in ("file:///", "untitled:x"):
        editor = spawn()
        params = {
            "processId": None,
            "rootUri": root,
            "workspaceFolders": [{"uri": root, "name": "\x1b[31m"}],
            "capabilities": {},
            "initializationOptions": {"index": {"enabled": False}},
        }
        assert "capabilities" in editor.request("initialize", params)
        editor.notify("initialized", {})
        assert editor.close() == 0
