"""The demo of `make run`: a repository that is not ours is fetched, indexed and completed.

Lines are cut out of its files and asked for again, with plain decoding and with drafting in turns.
Texts are equal, passes are not.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from codespec.backends.registry import open_vocabulary, target_of
from codespec.config import Settings, load_settings
from codespec.engine.local import LocalEngine
from codespec.errors import CodespecError
from codespec.index.build import build_index
from codespec.index.word_encoder import WordEncoder
from codespec.requests import Completion, CompletionRequest
from codespec.system.folders import cache_dir

# The bundled models have never seen this package.
PACKAGE = "flask==3.1.2"

# (file, start of the line that the cut begins after, lines cut out)
CUTS = (
    ("src/flask/sansio/scaffold.py", "    def delete(self, rule: str", 6),
    ("src/flask/ctx.py", "    def __contains__(self, item: str) -> bool:", 1),
    ("src/flask/json/provider.py", '        kwargs.setdefault("ensure_ascii"', 3),
    ("src/flask/app.py", "    def ensure_sync(self, func:", 12),
)

N_REPEATS = 5
"""Repeats of each way, in turns, as other programs may take the processor at any moment. The median
of the times is shown; all else is that of the first, as drafting learns from each repeat."""

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class DemoPlace:
    path: Path
    line: int
    prefix: str
    suffix: str


def main() -> None:
    settings = load_settings()
    root = fetch(PACKAGE)
    index(root, settings)
    engine = LocalEngine(settings)
    engine.remembers = False  # each place is asked about several times
    try:
        with console.status("measuring this machine"):
            engine.settle()
        info = engine.info
        console.print(
            f"[bold]model[/]  {info.name}: {info.n_params / 1e6:.1f} M parameters on {info.backend}"
        )
        total: list[tuple[Completion, Completion]] = []
        for place in cut_out(root):
            plain, drafted = complete(engine, place, root)
            show(place, root, plain, drafted)
            total.append((plain, drafted))
        summary(total)
    finally:
        engine.close()


def fetch(package: str) -> Path:
    """The source distribution of `package`, unpacked in the cache folder; downloaded once."""
    folder = cache_dir() / "demo" / package.replace("==", "-")
    if not folder.is_dir():
        Console(stderr=True).print(f"fetching {package}")  # others print JSON beside it
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(folder.parent), package]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"{package} could not be fetched: is the package index reachable from here?")
        archive = next(folder.parent.glob(f"{folder.name}*.tar.gz"))
        with tarfile.open(archive) as tar:
            # As an attribute, which a Python 3.10 or 3.11 from before there were filters ignores.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder.with_suffix(".part"))
        folder.with_suffix(".part").rename(folder)
    return next(path for path in folder.iterdir() if path.is_dir())


def index(root: Path, settings: Settings) -> None:
    model = open_vocabulary(target_of(settings.model))
    with console.status("indexing"):
        report = build_index(root, WordEncoder(model.tokenizer), settings.index)
    console.print(
        f"[bold]index[/]  {root.name}: {report.n_files} files, {report.n_tokens:,} tokens, "
        f"{report.n_index_bytes / max(report.n_tokens, 1):.1f} bytes a token, "
        f"{report.seconds * 1e3:.0f} ms"
    )
    model.close()


def cut_out(root: Path) -> list[DemoPlace]:
    places: list[DemoPlace] = []
    for name, start, n_lines in CUTS:
        lines = (root / name).read_text("utf-8").splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if line.startswith(start)) + 1
        first = lines[at]
        indent = first[: len(first) - len(first.lstrip())]
        places.append(
            DemoPlace(
                root / name,
                at + 1,
                "".join(lines[:at]) + indent,
                "\n" + "".join(lines[at + n_lines :]),
            )
        )
    return places


def complete(engine: LocalEngine, place: DemoPlace, root: Path) -> tuple[Completion, Completion]:
    """(with plain decoding, with drafting), both with the prompt in the cache, as after a key."""

    def ask(drafters: tuple[str, ...] | None) -> Completion:
        return engine.complete(
            CompletionRequest(
                place.prefix,
                place.suffix,
                path=str(place.path),
                workspace=str(root),
                max_tokens=48,
                drafters=drafters,
            )
        )

    ask(None)
    pairs = [(ask(()), ask(None)) for _ in range(N_REPEATS)]
    first = pairs[0]
    for i, completion in enumerate(first):
        completion.trace.ms = median(pair[i].trace.ms for pair in pairs)
    return first


def show(place: DemoPlace, root: Path, plain: Completion, drafted: Completion) -> None:
    console.rule(f"{place.path.relative_to(root)}:{place.line}", align="left")
    before = "".join(place.prefix.splitlines(keepends=True)[-4:])
    console.print(Text(before, "dim") + Text(drafted.text, "green"), soft_wrap=True)
    trace = drafted.trace
    sources = ", ".join(
        f"{source} {s.n_accepted}/{s.n_drafted}" for source, s in sorted(trace.by_source.items())
    )
    console.print(
        f"[bold]{trace.n_tokens} tokens in {trace.n_target_passes} target passes[/] "
        f"(plain: {plain.trace.n_target_passes}), {trace.ms:.1f} ms (plain: {plain.trace.ms:.1f}); "
        f"accepted/drafted: {sources or 'nothing drafted'}"
    )
    if plain.text != drafted.text:
        console.print("[yellow]the texts part at a tie between two tokens (floating point)[/]")


def summary(total: list[tuple[Completion, Completion]]) -> None:
    table = Table(title="all places")
    for column in ("", "tokens", "target passes", "drafted", "accepted", "ms", "speed"):
        table.add_column(column, justify="right" if column else "left")
    plain_ms = sum(plain.trace.ms for plain, _ in total)
    for name, which in (("plain", 0), ("drafted", 1)):
        traces = [pair[which].trace for pair in total]
        ms = sum(t.ms for t in traces)
        table.add_row(
            name,
            str(sum(t.n_tokens for t in traces)),
            str(sum(t.n_target_passes for t in traces)),
            str(sum(t.n_drafted for t in traces)),
            str(sum(t.n_accepted for t in traces)),
            f"{ms:.1f}",
            f"{plain_ms / ms:.2f} x",
        )
    console.print(table)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (CodespecError, OSError) as e:
        sys.exit(f"error: {e}")
