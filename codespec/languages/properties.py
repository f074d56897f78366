"""Properties of Java, and files of environment variables: keys and values that are any text."""

from __future__ import annotations

from codespec.languages.base import NEVER, Language, LineComment

LANGUAGE = Language(
    name="properties",
    extensions=(".properties", ".env"),
    files=(".env",),
    ids=("properties", "java-properties", "jproperties", "dotenv"),
    line_comments=(LineComment("#", begins_line=True), LineComment("!", begins_line=True)),
    strings=(),
    prose=True,
    documentation=("#", "!"),
    continues=NEVER,
    unfinished=r"\\$",
)
