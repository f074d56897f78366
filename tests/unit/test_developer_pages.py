"""The developers' pages are short, name files that exist, and show code that tests run."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [f"docs/dev/{page.name}" for page in sorted((ROOT / "docs" / "dev").glob("*.md"))]
MAPS = ["ARCHITECTURE.md", "CONTRIBUTING.md"]
ADDING = [page for page in PAGES if "/adding-" in page]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def paragraphs(name: str) -> list[str]:
    """Paragraphs and list items, without code, tables and headings."""
    prose = re.sub(r"```.*?```", "", text(name), flags=re.S)
    found: list[str] = []
    for block in re.split(r"\n\s*\n", prose):
        if block.strip() and not block.startswith(("|", "#", "    ")):
            found += re.split(r"\n(?=- |\d+\. )", block)
    return found


@pytest.mark.parametrize("name", [*PAGES, *MAPS])
def test_a_paragraph_is_one_thought(name: str) -> None:
    lengths = [len(paragraph.split()) for paragraph in paragraphs(name)]
    assert max(lengths) <= 60
    assert median(lengths) <= 40


def test_the_map_is_one_screen_and_the_long_page_is_read_in_one_sitting() -> None:
    assert len(text("ARCHITECTURE.md").splitlines()) <= 60
    assert len(text("docs/dev/architecture.md").splitlines()) <= 250


@pytest.mark.parametrize("name", [*PAGES, *MAPS, "GLOSSARY.md"])
def test_files_that_are_named_exist(name: str) -> None:
    page = text(name)
    for path in re.findall(r"`((?:codespec|lsp|bench|tests|docs)/[\w./-]*)`", page):
        assert (ROOT / path).exists(), path
    if name == "docs/dev/architecture.md":
        sections = re.findall(r"^## ((?:codespec|lsp)/[\w/]*)(.*?)(?=^## )", page, re.M | re.S)
        assert len(sections) > 10
        for room, body in sections:
            for file in re.findall(r"`(\w+\.py)`", body):
                assert (ROOT / room / file).exists(), f"{room}: {file}"


def test_each_room_is_on_the_map() -> None:
    rooms = {folder.parent.name for folder in (ROOT / "codespec").glob("*/__init__.py")}
    assert rooms == set(re.findall(r"`codespec/(\w+)/`", text("ARCHITECTURE.md")))


def test_the_map_leads_to_every_page() -> None:
    assert set(re.findall(r"\]\((docs/dev/[\w-]+\.md)\)", text("ARCHITECTURE.md"))) == set(PAGES)


@pytest.mark.parametrize("name", ADDING)
def test_code_of_a_page_is_that_of_a_test(name: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", text(name), re.S)
    assert blocks
    tests = [file.read_text("utf-8") for file in (ROOT / "tests" / "extension").rglob("*.py")]
    for block in blocks:
        assert any(block in test for test in tests), block


def test_ten_questions_have_answers() -> None:
    rows = re.findall(r"^\| (.*\?) \| \[([\w/.]+)\]\(\2\)", text("CONTRIBUTING.md"), re.M)
    assert len(rows) == 10
    for _, path in rows:
        assert (ROOT / path).exists(), path
