"""`codespec bench drafts`: what a draft model is worth, here and with larger targets.

Places lie in the files that distilling keeps aside. The target completes each of them with plain
decoding, with lookups in the file, and with draft models, alone and beside lookups. What is
accepted is measured; time is taken by the clock, and computed: what the same passes would have
taken with a target whose passes cost what a curve says, beside this draft model's. The planner
is told that cost, so it drafts as it would there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from codespec.backends.registry import open_vocabulary
from codespec.config import Settings
from codespec.context.prompt_window import Window
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import measure
from codespec.distill.acceptance import Contest, Contestant, contestants, opened
from codespec.distill.workspace import Workspace
from codespec.documents.live import LiveDocument
from codespec.drafters.base import Drafter
from codespec.drafters.lookup import LookupDrafter
from codespec.drafters.model_drafter import ModelDrafter
from codespec.drafters.planners import Planners
from codespec.drafters.token_kinds import token_kinds
from codespec.errors import InputError
from codespec.models import distilled
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec.models.resolve import draft_path, target_path
from codespec.native import Boundary
from codespec.syntax.text import safe_cuts
from codespec.types import Tokenizer, Trace

from .replay import cost_of
from .replay_report import load_curve
from .results import Row

HERE = "here"
CURVES = ("cpu-600m-q8-ours", "cpu-25m-q8", "cpu-500m-q8", "cpu-1500m-q8", "h200-7b-q8")
PLAIN, LOOKUPS, MODEL, BOTH = "plain", "lookups", "model", "both"

Progress = Callable[[int, int], None]


@dataclass
class _Way:
    """One set of drafters under one curve, summed over the places; milliseconds.

    spent_ms: by the drafters beyond lookups, at what the draft model's passes cost.
    """

    drafters: list[Drafter]
    curve: CostCurve
    draft_curve: CostCurve | None = None
    spent_ms: float = 0.0
    plain_ms: float = 0.0
    target_ms: float = 0.0
    clock_ms: float = 0.0
    n_tokens: int = 0
    traces: list[Trace] = field(default_factory=list[Trace])

    def passed(self, n_tokens: int, _ms: float) -> None:
        if self.draft_curve is not None:
            self.spent_ms += float(self.draft_curve.ms(np.array([n_tokens]))[0])

    def add(self, trace: Trace, seconds: float) -> None:
        if not trace.n_tokens:
            return
        # The first pass reads the rest of a prompt as well, which is the same for all.
        widths = [1 + trace.pass_depth[0], *trace.pass_width[1:]]
        self.target_ms += cost_of(widths, self.curve)
        self.plain_ms += cost_of([1] * trace.n_tokens, self.curve)
        self.clock_ms += 1e3 * seconds
        self.n_tokens += trace.n_tokens
        self.traces.append(trace)

    @property
    def computed(self) -> float:
        """Tokens a second, in those of plain decoding."""
        return self.plain_ms / (self.target_ms + self.spent_ms)

    def clocked(self, plain: _Way) -> float:
        return (self.n_tokens / self.clock_ms) / (plain.n_tokens / plain.clock_ms)


def run(
    workspace: Path,
    settings: Settings,
    extra: Sequence[Path] = (),
    curves: Sequence[str] = CURVES,
    n_places: int = 60,
    progress: Progress = lambda done, total: None,
) -> list[Row]:
    """A row a draft model and curve. extra: further draft models of the same target.

    Raises: InputError where there is no draft model, or too little text; ModelError.
    """
    target = target_path(settings.model)
    files = _files(target, workspace, settings, extra)
    n_threads = settings.model.n_threads or 1
    with opened(target, settings, n_threads) as (loaded, context):
        tokenizer = loaded.tokenizer
        places = Workspace(workspace, tokenizer, settings.index).places(n_places)
        window = Window(settings.completion.n_prefix_tokens, settings.completion.n_suffix_tokens)
        here = measure(context)
        contest = Contest(context, here, tokenizer, places, window)
        with contestants(list(files.values()), loaded, settings, n_threads) as drafting:
            fixed = contest.run(drafting)
            given = {HERE: here} | {name: load_curve(name) for name in curves}
            document = LiveDocument(tokenizer, safe_cuts(tokenizer))
            ways = _ways(contest, document, tokenizer, given, drafting)
            for done, (place, asked) in enumerate(contest.asked):
                progress(done, len(contest.asked))
                document.update(place.prefix, place.suffix)
                for way in ways.values():
                    # The prompt into the draft model's cache, as it is in the target's.
                    for drafter in way.drafters:
                        if isinstance(drafter, ModelDrafter):
                            drafter.read_ahead(asked, lambda: False)
                    way.add(*contest.complete(asked, *way.drafters, curve=way.curve, pads=True))
        info = loaded.info
    rows: list[Row] = []
    for i, (name, path) in enumerate(files.items()):
        about = open_vocabulary(path)
        shared: Row = {
            "target": info.name,
            "draft": name,
            "n_places": len(contest.asked),
            "n_threads": n_threads,
            "acceptance": fixed[i].acceptance,
            "n_drafted": fixed[i].n_drafted,
            "draft_ms": drafting[i].curve.points[1],
            "n_vocab": about.info.n_vocab,
        }
        about.close()
        for curve, cost in given.items():
            plain, lookups = ways[curve, PLAIN, -1], ways[curve, LOOKUPS, -1]
            alone, both = ways[curve, MODEL, i], ways[curve, BOTH, i]
            row = shared | {
                "curve": curve,
                "target_ms": cost.points[1],
                "lookups": lookups.computed,
                "model": alone.computed,
                "both": both.computed,
                "drafting": float(np.mean([d > 0 for t in alone.traces for d in t.pass_depth])),
            }
            if curve == HERE:
                row |= {
                    "clock_lookups": lookups.clocked(plain),
                    "clock_model": alone.clocked(plain),
                    "clock_both": both.clocked(plain),
                }
            rows.append(row)
    return rows


def _files(
    target: Path, workspace: Path, settings: Settings, extra: Sequence[Path]
) -> dict[str, Path]:
    found: dict[str, Path] = {}
    pair = draft_path(settings.model)
    if pair is not None:
        found["bundled" if pair == bundled(BUNDLED_DRAFT) else pair.stem] = pair
    at = distilled.draft_folder(distilled.fingerprint(target), str(workspace))
    record = distilled.read(at)
    if record is not None:
        found["distilled"] = at / record.file
    found |= {path.stem: path for path in extra}
    if not found:
        raise InputError(
            f"{target.name} has no draft model for {workspace}",
            "Make one: codespec distill; or give one with --draft.",
        )
    return found


def _ways(
    contest: Contest,
    document: LiveDocument,
    tokenizer: Tokenizer,
    curves: dict[str, CostCurve],
    drafting: Sequence[Contestant],
) -> dict[tuple[str, str, int], _Way]:
    """By curve, what drafts, and number of the draft model, -1 for none."""
    kinds = token_kinds(tokenizer)

    def lookup(curve: CostCurve) -> Drafter:
        planners = Planners(kinds)  # each way learns from its own drafts
        return LookupDrafter(
            lambda path: document,
            planners.of,
            boundary=lambda c: Boundary(c.left, c.healed, contest.vocabulary, tokenizer.encode),
            curve=curve,
        )

    ways: dict[tuple[str, str, int], _Way] = {}
    for name, curve in curves.items():
        ways[name, PLAIN, -1] = _Way([], curve)
        ways[name, LOOKUPS, -1] = _Way([lookup(curve)], curve)
        for i, contestant in enumerate(drafting):
            for what in (MODEL, BOTH):
                way = _Way([], curve, contestant.curve)
                model = ModelDrafter(contestant.speaking(way.passed), curve, contestant.curve)
                way.drafters = [model] if what == MODEL else [lookup(curve), model]
                ways[name, what, i] = way
    return ways


def print_rows(rows: list[Row]) -> None:
    """By draft model: times plain decoding, by what a pass of the target costs."""
    console = Console()
    first = rows[0]
    console.print(
        f"{escape(first['target'])}, {first['n_places']} places in files kept aside; "
        "tokens a second, in those of plain decoding"
    )
    for name in dict.fromkeys(row["draft"] for row in rows):
        of_draft = [row for row in rows if row["draft"] == name]
        head = of_draft[0]
        console.print(
            f"\n{escape(name)}: {head['acceptance']:.1%} of {head['n_drafted']:,} tokens accepted, "
            f"4 a draft; a pass takes {head['draft_ms']:.2f} ms"
        )
        table = Table("target", "a pass, ms", LOOKUPS, MODEL, BOTH, box=None)
        for column in table.columns[1:]:
            column.justify = "right"
        for row in of_draft:
            pass_ms = f"{row['target_ms']:.2f}"
            if row["curve"] == HERE:
                clocked = (f"{row['clock_' + key]:.2f}" for key in (LOOKUPS, MODEL, BOTH))
                table.add_row("this one, by the clock", pass_ms, *clocked)
            shown = "this one, computed" if row["curve"] == HERE else escape(row["curve"])
            computed = (f"{row[key]:.2f}" for key in (LOOKUPS, MODEL, BOTH))
            table.add_row(shown, pass_ms, *computed)
        console.print(table)
