"""Events around suggestions: processes that die, files that are left alone, switches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import wait_until_gone
from tests.editors.recorded import listening, told

from .conftest import PATIENT, Desk, Start
from .editor import Editor
from .install import Neovim
from .test_suggestions import CODE, OPEN

PROGRAM = str(Path(sys.executable).parent / "codespec")


@pytest.fixture
def editor(neovim: Neovim, desk: Desk, start: Start) -> Editor:
    editor = start(neovim, desk)
    editor.open(desk.file("a.py", CODE))
    return editor


def is_silent(editor: Editor) -> bool:
    """Asked for by a key, and answered if at all."""
    editor.idle()
    return not editor.read().ghost


def worker_pid(desk: Desk) -> int:
    """The model's process: the daemon's child; 0 while there is none."""
    (daemon,) = desk.daemon_pids()
    with open(f"/proc/{daemon}/task/{daemon}/children") as children:
        return int((children.read().split() or ["0"])[0])


def test_two_editors_on_one_daemon(neovim: Neovim, own_desk: Desk, start: Start) -> None:
    shown: list[str] = []
    editors = [start(neovim, own_desk), start(neovim, own_desk)]
    for number, editor in enumerate(editors):
        editor.open(own_desk.file(f"{number}.py", CODE))
        editor.type(OPEN)
    for editor in editors:
        shown.append(editor.wait_for_ghost().ghost)
    assert shown[0] == shown[1]
    assert len(own_desk.daemon_pids()) == 1
    assert editors[0].server_pid != editors[1].server_pid


def test_the_worker_is_killed_in_the_middle(neovim: Neovim, own_desk: Desk, start: Start) -> None:
    editor = start(neovim, own_desk)
    editor.open(own_desk.file("a.py", CODE))
    editor.type(OPEN)
    text = editor.wait_for_ghost().ghost
    pid = worker_pid(own_desk)
    os.kill(pid, signal.SIGSTOP)
    editor.type("<Esc>uGo<CR>def f(x):<CR>return x.")
    editor.wait_for(lambda: editor.lua("return require('codespec.inline').thinking()"))
    os.kill(pid, signal.SIGKILL)
    # Another is started, and what was typed meanwhile is answered.
    editor.wait_for(lambda: worker_pid(own_desk) not in (0, pid), "no new worker")
    editor.wait_for_ghost()
    editor.type("<Esc>u" + OPEN)
    assert editor.wait_for_ghost().ghost == text


def test_a_worker_that_hangs_is_replaced(newest: Neovim, own_desk: Desk, start: Start) -> None:
    deadlines = "settings={completion={deadline_auto_ms=5000, deadline_invoked_ms=5000}}"
    editor = start(newest, own_desk, deadlines)
    editor.open(own_desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    pid = worker_pid(own_desk)
    os.kill(pid, signal.SIGSTOP)
    editor.type(OPEN)
    editor.wait_for(lambda: worker_pid(own_desk) not in (0, pid), "no new worker")
    editor.wait_for_status("ready")
    editor.type("<Esc>u" + OPEN)
    editor.wait_for_ghost()


def test_the_server_comes_back_by_itself_and_by_command(editor: Editor) -> None:
    editor.type(OPEN)
    text = editor.wait_for_ghost().ghost
    first = editor.server_pid
    os.kill(first, signal.SIGKILL)
    wait_until_gone(first)
    editor.wait_for(lambda: editor.server_pid not in (0, first), "no new server")
    editor.wait_for_status("ready")
    editor.type("<Esc>u" + OPEN)
    assert editor.wait_for_ghost().ghost == text
    second = editor.server_pid
    editor.type("<Esc>u:Codespec restart<CR>")
    wait_until_gone(second)
    editor.wait_for_status("ready")
    editor.type(OPEN)
    assert editor.wait_for_ghost().ghost == text


def test_a_server_that_hangs_does_not_outlive_a_restart(
    neovim: Neovim, desk: Desk, start: Start, tmp_path: Path
) -> None:
    program = tmp_path / "hangs"
    # As one that is busy: Python hears of a signal only between its own instructions.
    hangs = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    program.write_text(f"""#!/bin/sh
[ -e {tmp_path}/pid ] && exec {PROGRAM} "$@"
echo $$ > {tmp_path}/pid; exec {sys.executable} -c '{hangs}'
""")
    program.chmod(0o755)
    editor = start(neovim, desk, f"cmd={{'{program}', 'lsp'}}, {PATIENT}")
    editor.open(desk.file("a.py", CODE))
    editor.wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    editor.type(":Codespec restart<CR>" + OPEN)
    editor.wait_for_ghost()
    wait_until_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("keys", ["Codespec restart", "qall!"])
def test_a_server_that_is_stopped_ends_all_the_same(editor: Editor, keys: str) -> None:
    editor.type(OPEN)
    editor.wait_for_ghost()
    pid = editor.server_pid
    os.kill(pid, signal.SIGSTOP)
    editor.type(f"<Esc>:{keys}<CR>")
    if keys == "qall!":
        editor.wait_for_end()
    else:
        editor.type("A")
        editor.wait_for_ghost()
    wait_until_gone(pid)


def test_a_server_that_never_lives_is_given_up(newest: Neovim, desk: Desk, start: Start) -> None:
    program = desk.path / "dies"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    editor = start(newest, desk, f"cmd={{'{program}'}}")
    editor.open(desk.file("a.py", CODE))
    message = editor.wait_for_status("error")
    assert "status 3" in message
    assert "Codespec restart" in message
    editor.wait_for(lambda: message[:40] in editor.messages)
    assert editor.messages.count(message[:40]) == 1
    editor.type(OPEN)  # nobody has to confirm anything
    assert is_silent(editor)


def test_an_excluded_file_stays_silent_and_says_why(editor: Editor, desk: Desk) -> None:
    desk.file(".gitignore", "secret_*.py\n")
    editor.open(desk.file("secret_plan.py", CODE))
    editor.type(OPEN)
    assert ".gitignore" in editor.wait_for_status("paused")
    assert is_silent(editor)
    assert editor.lua("return require('codespec').statusline()") == "codespec paused"
    # Only this file.
    editor.open(desk.file("plan.py", CODE))
    editor.type("<Esc>" + OPEN)
    editor.wait_for_ghost()
    editor.wait_for_status("ready")


def test_read_only_buffers_stay_silent(editor: Editor, desk: Desk) -> None:
    path = desk.file("b.py", CODE)
    editor.request("nvim_command", f"view {path}")
    editor.type(OPEN)
    assert is_silent(editor)
    assert editor.status() == {"kind": "off", "message": "the buffer is read-only"}
    editor.type("<Esc>u:set nomodifiable<CR>:<BS>" + "A")
    assert is_silent(editor)
    assert editor.status() == {"kind": "off", "message": "the buffer cannot be modified"}
    assert editor.text == CODE.rstrip("\n")
    # Not a file at all.
    editor.type("<Esc>:help<CR>")
    assert "help" in editor.status()["message"]


@pytest.mark.parametrize("keys", ["<C-c>", "<Insert>"])
def test_what_is_shown_goes_with_insert_mode(editor: Editor, keys: str) -> None:
    """Neither of them is an InsertLeave."""
    editor.type(OPEN)
    editor.wait_for_ghost()
    editor.type(keys)
    editor.wait(lambda frame: not frame.ghost)
    assert editor.suggested == ""


def test_what_is_shown_goes_when_the_file_is_read_again(editor: Editor, desk: Desk) -> None:
    editor.type(OPEN)
    editor.wait_for_ghost()
    desk.file("a.py", CODE.replace("pass", "return other(path).read()"))
    editor.type("<Cmd>edit!<CR>")
    editor.wait_for(lambda: "other" in editor.text)
    editor.wait(lambda frame: not frame.ghost)


def test_the_format_of_a_file_is_changed(newest: Neovim, desk: Desk, start: Start) -> None:
    """The server goes on ending lines as the file did."""
    editor = start(newest, desk)
    body = "    with open(path) as f:\n        return f.read()\n"
    code = "".join(f"def {name}(path):\n{body}\n\n" for name in ("read_file", "read_lines"))
    path = desk.file("b.py", f"import os\n\n\n{code}def main(path):\n    pass\n")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    editor.open(path)
    editor.type(":set fileformat=unix<CR>15Gccwith open(")
    editor.wait_for_ghost()
    assert "\n" in editor.suggested
    editor.lua("require('codespec').accept()")
    editor.type("<Esc>")
    assert "\r" not in editor.text


def test_buffers_without_a_name_do_not_get_in_each_others_way(
    newest: Neovim, desk: Desk, start: Start
) -> None:
    editor = start(newest, desk)
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type(":enew<CR>idef read_file(path):<CR>    with open(")
    editor.wait_for_ghost()
    editor.type("<Esc>:new<CR>")
    editor.wait_for(lambda: "without a name" in editor.status()["message"])
    editor.type(":bdelete<CR>A")
    editor.wait_for_ghost()


def test_a_buffer_is_known_by_its_new_name(newest: Neovim, desk: Desk, start: Start) -> None:
    editor = start(newest, desk)
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type(":file c.py<CR>" + OPEN)
    editor.wait_for_ghost()


@pytest.mark.parametrize("filetype", ["", "python"])
def test_a_buffer_is_known_by_the_name_that_it_is_written_under(
    neovim: Neovim, desk: Desk, editors: list[Editor], tmp_path: Path, filetype: str
) -> None:
    setup = f"{{cmd={{'{listening(PROGRAM, tmp_path)}', 'lsp'}}}}"
    editor = Editor(neovim, desk.env, desk.workspace, setup)
    editors.append(editor)
    editor.type(f":set filetype={filetype}<CR>idef read_file(path):<CR>with open(path")
    editor.wait_for_status("ready")
    editor.type("<Esc>:write! new.py<CR>A")
    editor.idle()

    def documents(method: str) -> list[str]:
        return [Path(p["textDocument"]["uri"]).name for p in told(tmp_path, method)]

    editor.wait_for(lambda: documents("textDocument/didOpen")[-1:] == ["new.py"])
    opened, closed = documents("textDocument/didOpen"), documents("textDocument/didClose")
    assert len(closed) == len(opened) - 1
    assert "new.py" not in closed
    assert told(tmp_path, "textDocument/didOpen")[-1]["textDocument"]["languageId"] == "python"


def test_languages_are_told(
    neovim: Neovim, desk: Desk, editors: list[Editor], tmp_path: Path
) -> None:
    """Also if `setup` comes before Neovim looks for the types of files, as in an init.lua, and
    after a change of type."""
    setup = f"require('codespec').setup({{cmd={{'{listening(PROGRAM, tmp_path)}', 'lsp'}}}})"
    early = ("--cmd", "filetype plugin indent off", "--cmd", f"lua {setup}", "--cmd", "filetype on")
    editor = Editor(neovim, desk.env, desk.workspace, "", *early)
    editors.append(editor)

    def languages() -> dict[str, str]:
        opened = (p["textDocument"] for p in told(tmp_path, "textDocument/didOpen"))
        return {Path(document["uri"]).name: document["languageId"] for document in opened}

    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.open(desk.file("run", "#!/bin/sh\necho\n"))
    editor.wait_for(lambda: languages() == {"a.py": "python", "run": "sh"}, languages)
    editor.type(":set filetype=markdown<CR>")
    editor.wait_for(lambda: languages()["run"] == "markdown", languages)


def test_switches(editor: Editor, desk: Desk) -> None:
    editor.type(OPEN)
    editor.wait_for_ghost()
    editor.type("<Cmd>Codespec disable<CR>")
    assert is_silent(editor)
    assert editor.status()["message"] == "switched off for this buffer"
    editor.type("p")
    assert is_silent(editor)
    # Asked for, it comes nevertheless.
    editor.lua("require('codespec').trigger()")
    editor.wait_for_ghost()
    editor.type("<Esc>:Codespec toggle<CR>A")
    editor.wait_for_ghost()

    editor.type("<Esc>:Codespec disable filetype<CR>")
    editor.open(desk.file("b.py", CODE))
    editor.type(OPEN)
    assert is_silent(editor)
    assert editor.status()["message"] == 'switched off for filetype "python"'
    editor.open(desk.file("b.js", "function add(a, b) {\n  pass\n}\n"))
    editor.type("<Esc>2Gccreturn ")
    editor.wait_for_ghost()
    editor.type("<Esc>:Codespec disable global<CR>A ")
    assert is_silent(editor)
    assert editor.lua("return require('codespec').statusline()") == "codespec off"
    editor.type("<Esc>:Codespec enable global<CR>A ")
    assert editor.status()["kind"] != "off"


def test_candidates_are_cycled(editor: Editor) -> None:
    editor.lua("vim.keymap.set('i', '<M-]>', '<Plug>(codespec-next)')")
    editor.lua("vim.keymap.set('i', '<M-[>', '<Plug>(codespec-previous)')")
    editor.type(OPEN)
    editor.wait_for_ghost()
    first = editor.suggested
    seen = [first]
    for _ in range(5):
        editor.type("<M-]>")
        editor.idle()
        if editor.suggested == first:
            break
        seen.append(editor.suggested)
    assert len(seen) > 1, "one candidate only"
    assert len(set(seen)) == len(seen)
    assert editor.suggested == first
    editor.type("<M-[>")
    editor.idle()
    assert editor.suggested == seen[-1]
    assert editor.read().ghost.startswith(seen[-1].split("\n")[0].strip())


def test_neovims_own_ghost_text(newest: Neovim, desk: Desk, start: Start) -> None:
    editor = start(newest, desk, f"ghost_text='builtin', {PATIENT}")
    editor.lua("vim.api.nvim_set_hl(0, 'ComplHint', { link = 'CodespecGhostText' })")
    editor.lua("""vim.keymap.set('i', '<Tab>', function()
      return require('codespec').accept_or('<Tab>')
    end, { expr = true })""")
    path = desk.file("a.py", CODE.replace("\n", "\r\n"))
    editor.open(path)
    editor.wait_for_status("ready")
    editor.type(OPEN)
    shown = editor.wait_for_ghost()
    assert "^M" not in "".join(shown.lines)
    editor.type("<Cmd>lua require('codespec').accept_word()<CR>")
    editor.wait_for(lambda: editor.text != CODE and editor.text.split("\n")[4] > "    with open(")
    word = editor.text.split("\n")[4].removeprefix("    with open(")
    assert word
    assert shown.ghost.startswith(word)
    editor.wait(lambda frame: frame.ghost and frame.ghost in shown.ghost)
    editor.type("<Tab>")
    editor.wait_for(lambda: editor.text.split("\n")[4] == shown.lines[4])
    editor.wait(lambda frame: not frame.ghost)
    editor.type("<Esc>:write<CR>")
    editor.wait_for(lambda: not editor.lua("return vim.bo.modified"))
    assert b"\r\r" not in path.read_bytes()
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")


def test_two_ghost_texts_never_show(newest: Neovim, desk: Desk, start: Start) -> None:
    """The user has switched Neovim's own on for other servers."""
    editor = start(newest, desk)
    editor.lua("vim.lsp.inline_completion.enable(true)")
    editor.open(desk.file("a.py", CODE))
    editor.type(OPEN)
    editor.wait_for_ghost()
    assert (
        editor.lua("""
      local client = vim.lsp.get_clients({ name = 'codespec' })[1]
      return client:supports_method('textDocument/inlineCompletion')
    """)
        is False
    )


def test_where_the_cursor_rests_is_told(
    neovim: Neovim, desk: Desk, start: Start, tmp_path: Path
) -> None:
    """So that the server reads ahead what a first suggestion there needs."""
    editor = start(neovim, desk, f"cmd={{'{listening(PROGRAM, tmp_path)}', 'lsp'}}, {PATIENT}")

    def lines() -> list[int | None]:
        found = told(tmp_path, "textDocument/didFocus")
        assert all(params["textDocument"]["uri"].endswith("a.py") for params in found)
        return [params.get("position", {}).get("line") for params in found]

    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.wait_for(lambda: lines() and lines()[-1] == 0)
    editor.type("jjj")
    editor.wait_for(lambda: lines()[-1] == 3)
    assert 1 not in lines()
    editor.type(":Codespec disable<CR>G")
    editor.wait_for(lambda: lines()[-1] is None)


def test_what_was_shown_and_accepted_is_counted(
    neovim: Neovim, own_desk: Desk, start: Start
) -> None:
    """In part first, which the server is told apart from the whole."""
    env = {**os.environ, **own_desk.env}

    def counted() -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "codespec", "stats", "--json"],
            env=env, check=True, capture_output=True, text=True,
        )  # fmt: skip
        found = json.loads(done.stdout)["languages"]
        return found[0] if found else {}

    editor = start(neovim, own_desk)
    editor.open(own_desk.file("a.py", CODE))
    editor.type(OPEN)
    editor.wait_for_ghost()
    text = editor.suggested
    editor.lua("require('codespec').accept_word()")
    editor.idle()
    word = text.removesuffix(editor.suggested)
    assert 0 < len(word) < len(text)
    editor.type("<Esc>:qall!<CR>")  # which writes what was counted
    editor.wait_for_end()
    assert counted()["n_accepted_chars"] == len(word)

    editor = start(neovim, own_desk)
    editor.open(own_desk.file("b.py", CODE))
    editor.type(OPEN)
    editor.wait_for_ghost()
    text = editor.suggested
    editor.lua("require('codespec').accept()")
    editor.idle()
    editor.type("<Esc>:qall!<CR>")
    editor.wait_for_end()
    counts = counted()
    assert counts["n_accepted_chars"] == len(word) + len(text)
    assert counts["n_shown"] >= 2
