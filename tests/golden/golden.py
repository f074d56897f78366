"""Golden files: cases that `check` compares with, or, with --update, is taken from.

    === name | option=value
    a document with <CURSOR>
    --- section
    ...

Sections named in `GIVEN` are input, all others are expected output. <U+202E> stands for that
character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

GIVEN = ("model", "files")
_HEADER = re.compile(r"^=== (.*)\n", re.MULTILINE)
_SECTION = re.compile(r"^--- (\w+)\n", re.MULTILINE)
_CHARACTER = re.compile(r"<U\+([0-9A-F]{4,6})>")


@dataclass
class Case:
    file: Path
    name: str
    options: dict[str, str]
    document: str
    sections: dict[str, str] = field(default_factory=dict)

    @property
    def cursor(self) -> tuple[str, str]:
        prefix, suffix = self.document.split("<CURSOR>")
        return prefix, suffix

    def given(self, section: str) -> str:
        text = self.sections.get(section, "")
        return _CHARACTER.sub(lambda m: chr(int(m[1], 16)), text)

    def __str__(self) -> str:
        options = "".join(f" | {k}={v}" for k, v in self.options.items())
        parts = [f"=== {self.name}{options}\n{self.document}\n"]
        parts += [f"--- {k}\n{v}\n" if v else f"--- {k}\n" for k, v in self.sections.items()]
        return "".join(parts)


def read(file: Path) -> list[Case]:
    parts = _HEADER.split(file.read_text("utf-8"))
    assert not parts[0], f"{file}: text before the first case"
    cases = []
    for header, body in zip(parts[1::2], parts[2::2], strict=True):
        name, *options = header.split(" | ")
        document, *sections = _SECTION.split(body)
        texts = {
            k: v.removesuffix("\n") for k, v in zip(sections[::2], sections[1::2], strict=True)
        }
        pairs = dict(option.split("=") for option in options)
        cases.append(Case(file, name, pairs, document.removesuffix("\n"), texts))
    return cases


def check(case: Case, found: dict[str, str], update: bool) -> None:
    """found: the output's sections; empty ones are left out of the file."""
    found = {k: v for k, v in found.items() if v or k == "inserted"}
    if not update:
        expected = {k: v for k, v in case.sections.items() if k not in GIVEN}
        assert found == expected, f"{case.file.name}: {case.name}; if right: pytest --update"
        return
    cases = read(case.file)
    mine = next(c for c in cases if c.name == case.name)
    mine.sections = {k: v for k, v in mine.sections.items() if k in GIVEN} | found
    case.file.write_text("".join(map(str, cases)), "utf-8")
