"""`codespec bench latency`: real editing, key by key, through a real language server and daemon.

The keys are those of `keystrokes`, made from a Git history; the folder holds the repository as it
was before each commit, indexed, so what is typed is nowhere to be found in it. For each editor,
server, daemon and worker start anew with caches of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from codespec.engine.energy import EnergyMeter
from codespec.engine.measures import measures
from codespec.requests import Completion

from . import workspace
from .acceptance import by_position, by_source
from .editor import Editor, editor_of, own_folders
from .history import Commit, History
from .results import Row
from .typist import Seen, TypedWorkspace, Typist

EDITORS = {"Neovim": 15.0, "VS Code": 50.0}
"""Milliseconds that editors wait after a key before they ask: our plug-in's default, and that of
VS Code's inline suggestions."""
SHARES = (50, 90, 95, 99)
WORDS = {
    "suggestion": "request to suggestion by the model",
    "visible": "key to any suggestion in view",
    "next": "one taken to the next in view",
    "typed_through": "request to kept suggestion",
    "nothing": "request to nothing",
    "overhead": "of it outside of the engine",
    "ttft": "engine: to the first token",
    "tpot": "engine: each further token",
}


@dataclass(frozen=True, slots=True)
class Typing:
    """Edits to type, and how. pace: factor of all pauses; model: settings of that section."""

    repo: Path
    n_commits: int = 25
    glob: str = "*.py"
    n_keys: int = 300
    pace: float = 1.0
    model: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def run(self, progress: Callable[[str], None] = lambda words: None) -> list[Row]:
        """A row an editor, then one for the starts. Raises: InputError."""
        history = History(self.repo, self.glob)
        commits = history.commits(self.n_commits)
        if not commits:
            raise history.nothing()
        warm: list[Row] = []
        starts: dict[str, list[float]] = {}
        for name, debounce_ms in EDITORS.items():
            with own_folders(with_cache=True) as folder:
                progress(f"{name}: indexing")
                root = folder / "workspace"
                root.mkdir()
                files = TypedWorkspace(root, history)
                files.check_out(commits[0])
                n_indexed = workspace.index(root, os.environ, str(self.model.get("target", "")))
                with editor_of(root, self.model, indexed=True) as editor:
                    typist = Typist(editor, root, debounce_ms / 1e3, self.pace)
                    progress(f"{name}: starting")
                    _start(editor, typist, commits[0], starts)
                    editor.generations()
                    meter = EnergyMeter()
                    typist.write(
                        commits, files, self.n_keys,
                        lambda n, name=name: progress(f"{name}: {n} of {self.n_keys} keys"),
                    )  # fmt: skip
                    made = editor.generations()
                    daemon = editor.daemon()
                    row = {
                        "config": name,
                        "model": daemon.model if daemon else "",
                        "backend": daemon.backend if daemon else "",
                        "debounce_ms": debounce_ms,
                        "n_indexed_tokens": n_indexed,
                        **_row(typist.seen, made, meter.joules()),
                        **{f"memory_mib_{k}": v for k, v in editor.memory_mib().items()},
                    }
            warm.append(row)
        cold: Row = {"config": "start", "n": len(EDITORS)}
        for what, values in starts.items():
            cold[f"{what}_ms"] = round(float(np.median(values)), 1)
        return [*warm, cold]


def _start(editor: Editor, typist: Typist, commit: Commit, starts: dict[str, list[float]]) -> None:
    """Nothing is warm: milliseconds since the server was started."""
    typist.go_to(commit.hunks[0])
    editor.wait_ready()
    ready = editor.elapsed_ms()
    editor.wait(typist.ask(invoked=True))
    for what, ms in (
        ("initialize", editor.startup_ms), ("ready", ready), ("first_answer", editor.elapsed_ms())
    ):  # fmt: skip
        starts.setdefault(what, []).append(ms)


def _row(seen: Seen, generations: Sequence[Completion], joules: float | None) -> Row:
    made = [g.trace for g in generations if g.finish != "cancelled"]
    lost_ms = sum(g.trace.ms for g in generations if g.finish == "cancelled")
    all_ms = sum(g.trace.ms for g in generations)
    n_tokens, n_passes = sum(t.n_tokens for t in made), sum(t.n_target_passes for t in made)
    n_shown = len(seen.visible)
    of = [measures(trace) for trace in made if trace.n_target_passes]
    samples = {
        "suggestion": seen.suggestion,
        "visible": seen.visible,
        "next": seen.next,
        "typed_through": seen.typed_through,
        "overhead": seen.overhead,
        "nothing": seen.nothing,
        "ttft": [m.time_to_first_token for m in of],
        "tpot": [m.time_per_token for m in of if m.time_per_token],
    }
    row: Row = {
        "n_keys": seen.n_keys,
        "n_requests": seen.n_requests,
        "n_unanswered": seen.n_unanswered,
        "n_swallowed": seen.n_swallowed,
        "n_suggestions": n_shown,
        "cache_hits": len(seen.typed_through) / n_shown if n_shown else 0.0,
        "n_taken": seen.n_accepted,
        "n_taken_chars": seen.n_accepted_chars,
    }
    for name, values in samples.items():
        row |= _percentiles(f"{name}_ms", values)
    return {
        **row,
        "n_generations": len(generations),
        "n_cancelled": len(generations) - len(made),
        "cancelled_share": lost_ms / all_ms if all_ms else 0.0,
        "prompt_reused": sum(t.n_prompt_cached for t in made)
        / max(sum(t.n_prompt_tokens for t in made), 1),
        "n_tokens": n_tokens,
        "mat": n_tokens / n_passes if n_passes else 0.0,
        "drafted": sum(t.n_drafted for t in made),
        "accepted": sum(t.n_accepted for t in made),
        **({"joules_per_token": joules / max(n_tokens, 1)} if joules is not None else {}),
        "by_source": by_source(made),
        "by_position": by_position(made),
        "samples": {name: [round(v, 2) for v in values] for name, values in samples.items()},
    }


def _percentiles(name: str, values: Sequence[float]) -> Row:
    if not values:
        return {}
    found = np.percentile(values, SHARES).tolist()
    return {f"{name}_p{q}": round(v, 2) for q, v in zip(SHARES, found, strict=True)}


def print_rows(rows: Sequence[Row]) -> None:
    *warm, cold = rows
    out = Console(markup=False)
    for row in warm:
        table = Table(
            "ms",
            *(f"p{share}" for share in SHARES),
            title=f"{row['config']}, asks {row['debounce_ms']:.0f} ms after a key: {row['n_keys']} "
            f"keys, {row['n_suggestions']} suggestions by {row['model']} on {row['backend']}",
        )
        for name, what in WORDS.items():
            if f"{name}_ms_p50" in row:
                table.add_row(what, *(f"{row[f'{name}_ms_p{share}']:.1f}" for share in SHARES))
        out.print(table)
        sources = [f"{s} {a}/{d}" for s, (a, d) in row["by_source"].items()]
        memory = [f"{k[11:]} {v:.0f}" for k, v in row.items() if k.startswith("memory_mib_")]
        energy = row.get("joules_per_token")
        out.print(
            f"kept suggestions: {row['cache_hits']:.0%} of those shown; taken: {row['n_taken']}, "
            f"{row['n_taken_chars']} characters. Requests: {row['n_requests']}, "
            f"{row['n_unanswered']} overtaken by the next key. Generations: "
            f"{row['n_generations']}, {row['n_cancelled']} cancelled, "
            f"{row['cancelled_share']:.0%} of their time. Prompt reused: "
            f"{row['prompt_reused']:.0%}. {row['mat']:.2f} tokens a pass; accepted of drafted: "
            f"{', '.join(sources) or 'none'}. MiB: {', '.join(memory)}. Energy: "
            + (f"{energy:.3f} J a token." if energy is not None else "not told by this machine."),
            highlight=False,
        )
    out.print(
        f"From the start of the server: reply to initialize after {cold['initialize_ms']:.0f} ms, "
        f"ready after {cold['ready_ms']:.0f}, first answer after {cold['first_answer_ms']:.0f} "
        f"(median of {cold['n']}).",
        highlight=False,
    )
