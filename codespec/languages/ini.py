"""INI files and what is like them: settings of editors, of git and of systemd."""

from __future__ import annotations

from codespec.languages.base import NEVER, Language, LineComment

LANGUAGE = Language(
    name="ini",
    extensions=(
        *(".ini", ".cfg", ".desktop", ".service", ".socket"),
        *(".timer", ".mount", ".inf", ".reg"),
    ),
    files=(".editorconfig", ".gitconfig", ".gitmodules", ".npmrc", ".pylintrc", ".flake8"),
    ids=("ini", "dosini", "cfg", "confini", "editorconfig", "gitconfig", "systemd", "desktop"),
    line_comments=(LineComment(";", begins_line=True), LineComment("#", begins_line=True)),
    strings=(),
    prose=True,
    holds=r"\s*[^\s;#]",
    documentation=("#", ";"),
    continues=NEVER,
    unfinished=r"\\$",
)
