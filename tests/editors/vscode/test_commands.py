"""Commands of the palette that are about codespec itself: the model, the doctor, the walkthrough;
and a workspace that is not trusted."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

from playwright.sync_api import Browser

from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled

from .app import Code, Window, until
from .test_editor import CODE, START


def test_the_model_is_chosen_from_the_list_or_as_a_file(
    window: Window, code: Code, workspace: Path, tmp_path: Path, artifacts: Path
) -> None:
    file = workspace / "model.py"
    file.write_text(CODE)
    window.open(file)
    window.press("Control+End")
    config = Path(code.env["XDG_CONFIG_HOME"]) / "codespec" / "config.toml"
    other = tmp_path / "other-model.gguf"
    shutil.copy(bundled(BUNDLED_TARGET), other)
    try:
        window.command("codespec: Choose Model")
        rows = window.page.locator(".quick-input-list .monaco-list-row")
        rows.filter(has_text="codespec-base").wait_for()
        assert rows.filter(has_text="in use").count() == 1
        window.screenshot(artifacts / "vscode-models.png")
        choose_file(window, other)
        until(lambda: config.exists() and str(other) in config.read_text(), "the user's settings")
        until(lambda: model_of_daemon(code) == str(other), "the model in the daemon")
        window.wait_for_status("codespec: ready")
        window.type(START)
        window.wait_for_ghost()
        window.press("Escape")

        window.command("codespec: Choose Model")
        rows.filter(has_text="other-model").filter(has_text="in use").wait_for()
        rows.filter(has_text="codespec-base").click()
        until(lambda: str(other) not in config.read_text(), "the user's settings")
        window.wait_for_status("codespec: ready")
        code.codespec("models", "remove", "other-model")
    finally:
        config.unlink(missing_ok=True)


def model_of_daemon(code: Code) -> str:
    """The model of the daemon of the current settings; "" while there is none."""
    try:
        return json.loads(code.codespec("daemon", "status", "--json"))["model_path"]
    except subprocess.CalledProcessError:
        return ""


def choose_file(window: Window, file: Path) -> None:
    """In the list of models."""
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    rows.filter(has_text="A GGUF file").click()
    box = window.page.locator(".quick-input-widget input").first
    until(lambda: box.input_value().startswith("/"), "the dialog that asks for a file")
    rows.filter(has_text="..").wait_for()
    box.fill(f"{file.parent}/")
    rows.filter(has_text=file.name).click()
    box.wait_for(state="hidden")


def test_a_file_that_is_no_model_is_said(window: Window, code: Code, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_text("not a model")
    window.command("codespec: Choose Model")
    choose_file(window, broken)
    window.command("Notifications: Show Notifications")
    said = window.page.locator(".notifications-center .notification-list-item")
    said.filter(has_text="broken.gguf: not a GGUF file").wait_for()
    window.command("Notifications: Clear All Notifications")
    window.wait_for_status("codespec: ready", "codespec-base")


def test_a_model_file_puts_no_link_into_a_message(window: Window, tmp_path: Path) -> None:
    """llama.cpp quotes it, and a link may run a command of the editor."""
    raw = bundled(BUNDLED_DRAFT).read_bytes()
    key = b"general.architecture"
    at = raw.index(key) + len(key) + 4  # behind the type of the value
    (n,) = struct.unpack_from("<Q", raw, at)
    name = b"[repair](command:workbench.action.closeAllEditors)"
    name += b"x" * (-(len(name) - n) % 32)  # what follows stays aligned
    (tmp_path / "link.gguf").write_bytes(
        raw[:at] + struct.pack("<Q", len(name)) + name + raw[at + 8 + n :]
    )
    window.command("codespec: Choose Model")
    choose_file(window, tmp_path / "link.gguf")
    window.command("Notifications: Show Notifications")
    said = window.page.locator(".notifications-center .notification-list-item")
    said.filter(has_text="unknown model architecture: '[repair]").wait_for()
    assert said.locator("a", has_text="repair").count() == 0
    window.command("Notifications: Clear All Notifications")


def test_doctor_is_about_the_file_at_hand(window: Window, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("left_out_*\n")
    file = workspace / "left_out_doctor.py"
    file.write_text(CODE)
    window.open(file)
    try:
        window.command("codespec: Run Doctor")
        report = window.page.locator(".tab", has_text="codespec doctor")
        report.wait_for()
        report.click()
        until(lambda: "left_out_*" in text_of(window), "why the file is left out")
        text = text_of(window)
        assert "build:" in text
        assert "codespec-base" in text
        assert "Traceback" not in text
    finally:
        window.command("View: Close All Editor Groups")
        (workspace / ".gitignore").unlink()


def text_of(window: Window) -> str:
    """All that is shown in editors, in no particular order."""
    lines = window.page.locator(".monaco-editor .view-line").all_text_contents()
    return "\n".join(lines).replace("\u00a0", " ")


def test_the_walkthrough_leads_to_each_step(window: Window, artifacts: Path) -> None:
    window.command("codespec: Open Walkthrough")
    try:
        page = window.page.locator(".gettingStartedContainer")
        for title in (
            "Create the Python environment",
            "Type, and press Tab",
            "See why it was suggested",
            "Change a name, and let the rest follow",
            "Choose a model",
            "When nothing is suggested",
        ):
            step = page.locator(".getting-started-step", has_text=title)
            step.wait_for()
            if step.get_attribute("aria-expanded") != "true":
                step.click()
            until(lambda step=step: step.get_attribute("aria-expanded") == "true", title)
        window.screenshot(artifacts / "vscode-walkthrough.png")
    finally:
        window.command("View: Close All Editor Groups")


def test_in_a_workspace_that_is_not_trusted_nothing_of_it_counts(
    code: Code, browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    folder = tmp_path / "workspace"
    (folder / ".vscode").mkdir(parents=True)
    evil = folder / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {folder}/was_run\n")
    evil.chmod(0o755)
    settings = {
        "codespec.path": str(evil),
        "codespec.model": str(folder / "evil.gguf"),
        "codespec.server": {"model": {"target": str(folder / "evil.gguf")}},
    }
    (folder / ".vscode" / "settings.json").write_text(json.dumps(settings))
    file = folder / "main.py"
    file.write_text(CODE)
    trust = {"enabled": True, "startupPrompt": "never", "emptyWindow": False}
    with code.settings({f"security.workspace.trust.{key}": trust[key] for key in trust}):
        window = Window(code, browser, file)
        try:
            window.page.locator(".statusbar-item", has_text="Restricted Mode").wait_for()
            window.wait_for_status("codespec: ready", "codespec-base")
            window.press("Control+End")
            window.type(START)
            window.wait_for_ghost()
            window.screenshot(artifacts / "vscode-restricted.png")
            assert not (folder / "was_run").exists()
        finally:
            window.close()
