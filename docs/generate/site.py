"""The site that is made from the pages: python -m docs.generate.site

Pages keep their folders, so that their links to each other and to pictures hold. A link to any
other file of the repository becomes its text: the site has pages alone. What is made is looked at:
each link leads somewhere, and nothing is loaded from the network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
CONFIG = Path(__file__).with_name("site.toml")
BUILD = ROOT / "build"
PAGES, SITE = BUILD / "pages", BUILD / "site"
_BESIDE = ("bench", "bench/log", "lsp", "editor-plugins", "codespec/models/bundled")
"""Folders outside docs whose Markdown is part of the site."""
_FOR_DEVELOPERS = ("log", "dev", "bench", "lsp")
"""Folders of pages that search leaves out, so that it answers users first."""
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""Head of a page that search leaves out."""
_WORKER = Path(__file__).with_name("file_worker.js")
_SHIM = "https://unpkg.com/iframe-worker/shim"
"""The script that the generator has loaded for pages on the disk; ours is local."""
_HOSTS = re.compile(r"https://(?:unpkg\.com|cdn\.jsdelivr\.net|api\.github\.com)/[^\"'`)\s]*")
"""Addresses from which the generator's script would load what these pages do not use."""
_FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_LOADS = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object|input)\b[^>]*?\b(?:src|srcset|data|poster)="
    r"[\"']?(?:https?:)?//"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon|dns-prefetch|modulepreload"
    r"|manifest|prefetch))[^>]*?\bhref=[\"']?(?:https?:)?//"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//"
    r"|url\(\s*[\"']?(?:https?:)?//",
    re.I,
)
"""Places of HTML or CSS that have a browser load something from another host."""


def sources() -> list[Path]:
    """The pages of the site, in the repository."""
    beside = (page for folder in _BESIDE for page in (ROOT / folder).glob("*.md"))
    plugins = (ROOT / "editor-plugins").glob("*/README.md")
    return sorted({*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *beside, *plugins})


def gather() -> None:
    """Copy pages and their pictures into the build folder, links made fit."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = sources()
    for page in pages:
        target = PAGES / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = page.read_text("utf-8")
        head = _NOT_SEARCHED if page.parent.name in _FOR_DEVELOPERS else ""
        target.write_text(head + fit_links(text, page, set(pages)), "utf-8")
        for picture in pictures(text, page):
            copied = PAGES / picture.relative_to(ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, copied)


def pictures(text: str, page: Path) -> Iterator[Path]:
    for is_picture, _, link in _LINK.findall(text):
        if is_picture and "://" not in link:
            yield (page.parent / link).resolve()


def fit_links(text: str, page: Path, pages: set[Path]) -> str:
    """The text of a page, in which links to files that are no page of the site are their text."""

    def fit(link: re.Match[str]) -> str:
        target = (page.parent / link[3].partition("#")[0]).resolve()
        if link[1] or "://" in link[3] or link[3].startswith("#"):
            return link[0]
        if target.is_dir() and (target / "README.md").resolve() in pages:
            return f"[{link[2]}]({link[3].rstrip('/')}/README.md)"
        return link[0] if target in pages else link[2]

    parts = _FENCE.split(text)
    return "".join(p if p.startswith("```") else _LINK.sub(fit, p) for p in parts)


def build() -> None:
    """Make the site. Raises: subprocess.CalledProcessError."""
    shutil.rmtree(SITE, ignore_errors=True)
    config = BUILD / "zensical.toml"  # folders in it are beside it
    shutil.copyfile(CONFIG, config)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--config-file", str(config)]
    subprocess.run(command, cwd=BUILD, check=True)
    (SITE / "404.html").unlink(missing_ok=True)  # its links are those of a host's root
    shutil.copyfile(_WORKER, SITE / "assets" / _WORKER.name)
    for page in SITE.rglob("*.html"):
        to_root = "../" * (len(page.relative_to(SITE).parts) - 1)
        text = page.read_text("utf-8")
        local = text.replace(_SHIM, f"{to_root}assets/{_WORKER.name}")
        page.write_text(local, "utf-8")
    for script in SITE.rglob("*.js"):
        if _HOSTS.search(text := script.read_text("utf-8")):
            script.write_text(_HOSTS.sub("about:blank", text), "utf-8")


def faults(site: Path) -> Iterator[str]:
    """Links of a site that lead nowhere, and places that load from the network."""
    anchors = {
        page: set(re.findall(r'\bid="?([^"\s>]+)', page.read_text("utf-8")))
        for page in site.rglob("*.html")
    }
    for page in sorted(anchors):
        text = page.read_text("utf-8")
        name = page.relative_to(site).as_posix()
        yield from (f"{name}: loads {load}" for load in loads(text))
        for link in re.findall(r'<a\b[^>]*?\bhref="?([^"\s>]+)', text):
            path, _, anchor = unescape(link).partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif anchor and target in anchors and unquote(anchor) not in anchors[target]:
                yield f"{name}: {link} has no such place"
    for file in sorted([*site.rglob("*.css"), *site.rglob("*.js")]):
        text = file.read_text("utf-8")
        found = loads(text) if file.suffix == ".css" else _HOSTS.findall(text)
        yield from (f"{file.relative_to(site).as_posix()}: loads {load}" for load in found)


def loads(text: str) -> Iterator[str]:
    """Places of HTML or CSS that load from another host."""
    for found in _LOADS.finditer(text):
        yield " ".join(text[found.start() : found.end() + 40].split())


def main() -> None:
    gather()
    build()
    found = list(faults(SITE))
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"{SITE / 'index.html'}: {sum(1 for _ in SITE.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
