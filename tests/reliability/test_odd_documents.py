"""Documents of all kinds that nobody writes by hand, with the model: each request is answered, and
no worker ends. (What ends a parser costs a document its syntax: `test_daemon_supervisor.py`. Long
lines: `test_long_lines.py`; what is too large: `test_editor_bounds.py`.)"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import CODE, CURSOR, Home, Spawn, report_of
from tests.rpc import insert

DOCUMENTS = {
    "many lines": ("python", "x = 1\n" * 100_000, 50_000, 5),
    "brackets": ("python", "(" * 50_000 + "\n", 0, 50_000),
    "nested blocks": ("c", "if (a) {\n" * 20_000, 20_000, 0),
    "zeros": ("python", "\0" * 10_000 + "\nx = ", 1, 4),
    "lone surrogates": ("python", "x = '\ud800\udfff'\ny = ", 1, 4),
    "no line ends": ("javascript", "var a = 1;" * 20_000, 0, 100_000),
    "old line ends": ("python", "x = 1\r" * 10_000, 5_000, 5),
    "mixed line ends": ("python", "a = 1\r\nb = 2\nc = 3\r" * 2_000, 3_000, 5),
    "emoji": ("python", "x = '" + "\U0001f469\u200d\U0001f4bb" * 10_000 + "'\n", 0, 50_000),
    "marks": ("python", "e" + "\u0301" * 50_000 + "\n", 0, 50_001),
    "bidirectional": ("python", "\u202ex = 1\u2066\n" * 5_000, 4_999, 3),
    "unfinished strings": ("python", '"""\n' * 20_001, 20_001, 0),
    "unfinished comments": ("c", "/*\n" * 20_000, 20_000, 0),
    "tabs": ("python", "\t" * 100_000 + "x = ", 0, 100_004),
    "markers of prompts": ("python", "<fim_middle><fim_prefix><|endoftext|>\n" * 500, 250, 12),
    "no language": ("nothing-known", "\x1b[31m\x07" * 5_000, 0, 100),
    "base64": ("json", '{"a": "' + "QUJD" * 50_000 + '"}', 0, 1_000),
}


@pytest.mark.timeout(600)
def test_each_is_answered(home: Home, spawn: Spawn) -> None:
    editor = spawn()
    editor.initialize(home.workspace, options={"index": {"enabled": False}})
    editor.wait_for_status("Normal", "ready")
    good = (home.workspace / "good.py").as_uri()
    editor.open(good, CODE)
    before = report_of(home.settings)
    for i, (name, (language, text, line, character)) in enumerate(DOCUMENTS.items()):
        uri = (home.workspace / f"odd_{i}").as_uri()
        editor.open(uri, text, language)
        assert isinstance(editor.complete(uri, line, character), list), name
        editor.change(uri, 2, insert(line, character, "a"))
        assert isinstance(editor.complete(uri, line, character + 1, invoked=False), list), name
        assert isinstance(editor.complete(good, *CURSOR), list), name
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    after = report_of(home.settings)
    assert (after.pid, after.worker_pid, after.n_respawns) == (before.pid, before.worker_pid, 0)
    assert editor.close() == 0
    assert "Traceback" not in editor.stderr.decode()
