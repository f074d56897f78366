"""The site of the pages: links fit it, nothing is loaded from the network, and a newcomer's
questions find their page."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from docs.generate import site

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
USERS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "dev"]


def test_links_to_other_files_become_their_text() -> None:
    page, pages = ROOT / "README.md", set(site.sources())
    text = "[a](docs/cli.md#all-commands) [b](tests/conftest.py) [c](https://a.example) [d](docs)"
    fit = site.fit_links(text, page, pages)
    assert fit == ("[a](docs/cli.md#all-commands) b [c](https://a.example) [d](docs/README.md)")
    assert site.fit_links("```\n[b](tests/conftest.py)\n```", page, pages).count("](") == 1


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/a.js"></script>',
        "<img alt=x src=//cdn.example/a.png>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link href="https://fonts.example" rel="preconnect">',
        "@import url('https://fonts.example/css');",
        "a { background: url(http://cdn.example/a.png) }",
    ],
)
def test_what_is_loaded_from_the_network_is_found(text: str) -> None:
    assert list(site.loads(text))


def test_links_and_local_files_load_nothing() -> None:
    text = (
        '<a href="https://a.example">a</a> <script src="assets/a.js"></script> '
        '<link rel="canonical" href="https://a.example"> a { background: url(a.svg) }'
    )
    assert not list(site.loads(text))


def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h2 id="here">A</h2><a href="#here">a</a> <a href="b.html#there">b</a> '
        '<a href="c.html">c</a>'
    )
    (tmp_path / "b.html").write_text('<img src="https://a.example/a.png">')
    (tmp_path / "c.js").write_text('load("https://unpkg.com/mermaid")')
    found = "\n".join(site.faults(tmp_path))
    assert "a.html: b.html#there has no such place" in found
    assert "a.html: c.html leads nowhere" in found
    assert "b.html: loads" in found
    assert "c.js: loads" in found
    assert len(found.splitlines()) == 4


def test_the_menu_has_every_page_for_users() -> None:
    menu = site.CONFIG.read_text("utf-8")
    tomllib.loads(menu)
    listed = re.findall(r'= "([\w/.-]+\.md)"', menu)
    assert len(listed) == len(set(listed))
    assert {page.relative_to(ROOT).as_posix() for page in USERS} <= set(listed)
    assert all((ROOT / page).exists() for page in listed)


# --- questions of a newcomer -----------------------------------------------------------------

_COMMON = {"a", "an", "the", "it", "is", "to", "for", "of", "in", "how", "do", "i", "my", "with"}
_COMMON |= {"what", "does", "can", "on", "and", "or", "be", "there"}


@cache
def parts() -> list[tuple[str, Counter[str], Counter[str]]]:
    """(page, words of its heading, words) of each part of the pages for users."""
    found: list[tuple[str, Counter[str], Counter[str]]] = []
    for page in USERS:
        name = page.relative_to(ROOT / "docs").as_posix()
        if name == "README.md":
            continue
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
        for part in re.split(r"^(?=#+ )", text, flags=re.M):
            heading, _, body = part.partition("\n")
            if heading.startswith("#"):
                found.append((name, Counter(words(heading)), Counter(words(body))))
    return found


def words(text: str) -> list[str]:
    found = re.findall(r"[a-z0-9]+", text.lower())
    return [re.sub(r"(?<=\w{3})(?:s|ed|ing)$", "", word) for word in found if word not in _COMMON]


def answers(question: str) -> list[str]:
    """Pages by how well a part of theirs answers, the best first: words that few parts have count
    more (BM25), those in a heading five times."""
    asked, scores = words(question), dict[str, float]()
    length = sum(body.total() for _, _, body in parts()) / len(parts())
    for name, heading, body in parts():
        score = 0.0
        for word in asked:
            n_with = sum(word in h or word in b for _, h, b in parts())
            rarity = math.log(1 + (len(parts()) - n_with + 0.5) / (n_with + 0.5))
            n = body[word] + 5 * heading[word]
            score += rarity * n / (n + 0.5 + body.total() / length)
        scores[name] = max(scores.get(name, 0.0), score)
    return sorted(scores, key=lambda name: -scores[name])


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("how do I switch it off for a language", ["restraint.md"]),
        ("which model for 8 GB", ["models.md"]),
        ("does it send my code anywhere", ["privacy.md"]),
        ("why no suggestion", ["troubleshooting.md"]),
        ("how to remove it", ["install.md"]),
        ("use with Ollama", ["models.md", "remote-model.md", "clients.md"]),
        ("accept one word", ["completion.md"]),
        ("GPU", ["install.md"]),
        ("offline", ["troubleshooting.md", "install.md"]),
        ("company proxy certificates CA", ["troubleshooting.md"]),
    ],
)
def test_a_newcomers_question_finds_its_page_first(question: str, pages: list[str]) -> None:
    assert answers(question)[0] in pages
