"""YAML: blocks are told by indentation, lists may stand in the column of their key."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, HASH, NEVER, Language, LineComment, Quotes

# Elsewhere a quote or a bracket is a sign of text that has no quotes.
BEGINS_VALUE = r"(?<![^\s\[{,:])(?<![\w.)] )"
# A comment ends it, as it ends all text.
NO_COMMENT = r"(?:(?<!\s)#|[^#"
BRACKETED = rf"(?:\[{NO_COMMENT}\]\n])*\]?|\{{{NO_COMMENT}}}\n])*\}}?)"
LANGUAGE = Language(
    name="yaml",
    extensions=(".yaml", ".yml"),
    files=(".clang-format", ".clang-tidy", ".clangd", ".yamllint", ".condarc", ".gemrc"),
    ids=("yaml", "dockercompose", "github-actions-workflow", "ansible", "yaml.ansible"),
    line_comments=(LineComment(HASH.opener, after=r"(?<![^\s])"),),
    # They may go on in the next line, as people hardly ever write them.
    strings=(
        Quotes(DOUBLE.opener, after=BEGINS_VALUE),
        Quotes("'", escape="doubled", after=BEGINS_VALUE),
    ),
    text=r"[()]|\$\{\{[^\n]*?\}\}|\$\{[^{}\n]*\}"
    rf"|(?<=[^\s\[{{,:\"']){BRACKETED}|(?<=[\w.)] ){BRACKETED}",
    documentation=("#",),
    heads="colon",
    indents=r"(?:^|[:-]\s)\s*(?:[&!]\S+\s*)*(?:[|>][-+\d]*|[&!]\S+)\Z|^\s*(?:-\s+)*-\Z",
    item="- ",
    text_blocks=r"(?:^|[:-]\s)\s*(?:[&!]\S+\s+)*[|>][-+\d]*\s*(?:#.*)?\Z",
    continues=NEVER,
    unfinished=r"\s\\$",
    conditional=False,
    brace_is_value=True,
)
