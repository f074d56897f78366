"""`codespec tour`"""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from codespec.cli import (
    CODE,
    check_folder,
    json_option,
    model_options,
    model_settings,
    print_json,
    printable,
)
from codespec.cli.doctor import examine
from codespec.cli.tour.tour_places import (
    CutLine,
    changed_lines,
    cut_lines,
    documents,
    renamed_definitions,
)
from codespec.config import Settings, load_settings
from codespec.documents.from_disk import read_document, workspace_of
from codespec.next_edit import BARS, NextEditRequest
from codespec.requests import CompletionRequest
from codespec.system.processes import module_command

_N_ASKED = 12  # places that are completed, until one comes as it was written
_N_RENAMED = 8
_WAITS = "Enter to go on"


@click.command()
@click.argument("workspace", type=click.Path(path_type=Path), default=".")
@model_options
@json_option
def command(workspace: Path, model: str | None, draft_model: str | None, as_json: bool) -> None:
    """Three minutes with codespec, on a repository of yours: a completion, the reason for it, a
    next edit, and what the doctor says.

    WORKSPACE is the repository (default: that of this folder). It is indexed, which is kept in the
    cache folder; nothing in it is changed.
    """
    check_folder(workspace)
    root = workspace_of(workspace.resolve() / "any")
    options = model_settings(model, draft_model)
    settings = load_settings(options)
    told: dict[str, Any] = {"workspace": str(root)}
    steps = _Steps(quiet=as_json)
    steps.title(f"1. The index of {printable(root.name)}")
    steps.say("Text of your repository drafts what a model is about to say. It stays here.")
    index = module_command("codespec", "index", str(root), *(["--quiet"] if as_json else []))
    if subprocess.run(index, check=False).returncode:
        click.get_current_context().exit(1)
    told |= _with_engine(steps, settings, root)
    steps.title("5. What the doctor says")
    findings = examine(root, options, measure=False)
    told["findings"] = [msgspec.to_builtins(f) for f in findings]
    wrong = [f for f in findings if f.level in ("warning", "error")]
    for f in wrong:
        steps.say(f"{f.area}: {f.message}")
        steps.say(f"  {f.next_step}")
    n_fine = len(findings) - len(wrong)
    steps.say(f"{n_fine} of {len(findings)} findings are fine; `codespec doctor` lists them all.")
    steps.title("From here")
    steps.say("`codespec models recommend` says which larger models suit this machine.")
    steps.say("Your editor: docs/editors.md. Why something is suggested: `codespec explain`.")
    if as_json:
        print_json(told)


class _Steps:
    """Output for people, step by step, with time to read where somebody sits before it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._waits = not quiet and sys.stdin.isatty() and sys.stdout.isatty()
        self._is_first = True

    def title(self, text: str) -> None:
        if self._waits and not self._is_first:
            click.prompt(f"\n{_WAITS}", default="", show_default=False, prompt_suffix="")
        self._is_first = False
        if not self._quiet:
            click.secho(f"\n{text}", bold=True)

    def say(self, text: str) -> None:
        if not self._quiet:
            click.echo(printable(text))

    def code(self, before: str, text: str, after: str = "") -> None:
        if not self._quiet:
            shown = click.style(printable(text, CODE), fg="green")
            dim = (click.style(printable(part, CODE), dim=True) for part in (before, after))
            click.echo(shown.join(dim))


def _with_engine(steps: _Steps, settings: Settings, root: Path) -> dict[str, Any]:
    from codespec.engine.local import LocalEngine

    with Console(stderr=True).status("loading the model"):
        engine = LocalEngine(settings)
    try:
        texts = documents(root, settings.index)
        completed = _complete(steps, engine, texts, root)
        return {**completed, "next_edit": _edit(steps, engine, texts, root)}
    finally:
        engine.close()


def _request(place: CutLine, root: Path) -> CompletionRequest:
    return CompletionRequest(
        place.prefix, place.suffix, path=str(place.path), workspace=str(root), multiline=False
    )


def _complete(
    steps: _Steps, engine: Any, texts: list[tuple[Path, str]], root: Path
) -> dict[str, Any]:
    """Steps 2 and 3."""
    from codespec.engine.explanation import explain

    steps.title("2. A completion")
    asked: list[tuple[CutLine, str]] = []
    for place in islice(cut_lines(texts), _N_ASKED):
        asked.append((place, engine.complete(_request(place, root)).text))
        if asked[-1][1] == place.rest:
            break
    answered = [each for each in asked if each[1]]
    if not answered:
        steps.say("No line stands here twice, so there is none that the repository could draft.")
        return {"completion": None, "n_asked": len(asked)}
    place, text = next((each for each in answered if each[1] == each[0].rest), answered[-1])
    where = f"{place.path.relative_to(root)}:{place.line}:{place.column}"
    steps.say(f"{where}, with the rest of its line cut out:")
    before = place.prefix.split("\n")[-3:]
    steps.code("\n".join(f"    {line}" for line in before), text)
    as_written = text == place.rest
    steps.say("as it was written" if as_written else f"it was written so: {place.rest}")
    if len(asked) > 1:
        steps.say(f"{len(asked)} places were asked; the model goes its own way at some.")
    steps.title("3. Why this")
    found = explain(engine, _request(place, root))
    spans = [span for each in found.passes for span in each.spans]
    n_accepted = sum(span.n_accepted for span in spans)
    steps.say(f"{found.model} read {found.prompt.n_tokens if found.prompt else 0} tokens.")
    steps.say(f"It took {len(found.passes)} passes; {n_accepted} tokens came as drafts:")
    for span in spans:
        if span.n_accepted:
            source = f"{span.path}:{span.line}" if span.path else span.source
            steps.say(f"  {span.n_accepted} of {span.n_drafted} from {source}: {span.text!r}")
    steps.say("Each draft was checked by the model: the text is what it would have said alone.")
    steps.say(f"All of it: codespec explain {place.path}:{place.line}:{place.column}")
    return {
        "completion": {"place": where, "text": text, "as_written": as_written},
        "explanation": msgspec.to_builtins(found),
        "n_asked": len(asked),
    }


def _edit(
    steps: _Steps, engine: Any, texts: list[tuple[Path, str]], root: Path
) -> dict[str, Any] | None:
    """Step 4."""
    steps.title("4. A next edit")
    for renamed in islice(renamed_definitions(texts), _N_RENAMED):

        def ask(text: str, path: Path = renamed.path, at: int = renamed.offset) -> Any:
            return engine.find_edits(
                NextEditRequest(text, at, str(path), str(root), bar=BARS["medium"])
            )

        ask(renamed.before)
        answer = ask(renamed.after)
        if not answer.edits:
            continue
        first = answer.edits[0]
        steps.say(
            f"If you renamed {renamed.name} to {renamed.new_name} where "
            f"{renamed.path.relative_to(root)} defines it:"
        )
        where = f"{Path(first.path).relative_to(root)}:{first.line + 1}"
        steps.say(f"{where}, {first.chance:.0%} likely, one of {answer.n_left}:")
        path = Path(first.path)
        text = renamed.after if path == renamed.path else read_document(path)
        old, new = changed_lines(text, first.edit)
        for line in old:
            steps.code(f"  - {line}", "")
        for line in new:
            steps.code("  + ", line)
        steps.say("In an editor one key goes there, and the same key makes it.")
        return {
            "renamed": renamed.name,
            "place": where,
            "kind": first.kind,
            "chance": first.chance,
            "n_left": answer.n_left,
        }
    steps.say("No definition here is used often enough in its own file to show one.")
    return None
