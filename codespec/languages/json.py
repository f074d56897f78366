"""JSON (RFC 8259)."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, NEVER, JsonDialect, Language

LANGUAGE = Language(
    name="json",
    extensions=(
        *(".json", ".webmanifest", ".ipynb", ".geojson", ".topojson", ".har", ".avsc"),
        *(".mcmeta", ".tfstate", ".gltf", ".sarif"),
    ),
    files=(
        *("composer.lock", "flake.lock", "pipfile.lock", ".all-contributorsrc", ".arcconfig"),
        *(".bowerrc", ".nycrc", ".watchmanconfig"),
    ),
    ids=("json",),
    yields_to=("jsonc", "json5", "jsonl"),
    strings=(DOUBLE,),
    continues=NEVER,
    unfinished=r":\Z",
    conditional=False,
    brace_is_value=True,
    json=JsonDialect(),
)
