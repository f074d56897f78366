"""JSON with comments, as editors and many tools have it for their settings."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE,
    NEVER,
    SLASH_STAR,
    SLASHES,
    JsonDialect,
    Language,
)

LANGUAGE = Language(
    name="jsonc",
    extensions=(".jsonc", ".code-workspace", ".code-snippets", ".sublime-settings"),
    files=(
        *("tsconfig.json", "jsconfig.json", "tslint.json", "typedoc.json", "api-extractor.json"),
        *("babel.config.json", ".babelrc", ".babelrc.json", ".eslintrc", ".eslintrc.json"),
        *(".jshintrc", ".hintrc", ".swcrc", ".luarc.json", "deno.json", "bun.lock", "turbo.json"),
        *("language-configuration.json", "devcontainer.json", ".devcontainer.json"),
        *(".devcontainer/*.json", ".vscode/*.json", ".zed/*.json"),
    ),
    ids=("jsonc",),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE,),
    continues=NEVER,
    unfinished=r":\Z",
    conditional=False,
    brace_is_value=True,
    json=JsonDialect(comments=True, trailing_commas="as elsewhere"),
)
