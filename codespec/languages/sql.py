"""SQL, as its dialects have it together. A body between dollars is code."""

from __future__ import annotations

from codespec.languages.base import (
    NESTED_SLASH_STAR,
    Language,
    LineComment,
    Quotes,
)

# PostgreSQL's operators `#`, `#>` stand behind an operand and a blank, T-SQL's tables are `#name`.
BEFORE_HASH = r"(?<!\S)(?<![\w)'\"\]] )"
LANGUAGE = Language(
    name="sql",
    extensions=(".sql", ".psql", ".pgsql", ".ddl", ".dml", ".pls", ".plsql", ".pks", ".pkb"),
    ids=("sql", "plsql", "pgsql", "postgres", "postgresql", "mysql", "sqlite", "mssql", "tsql"),
    line_comments=(
        LineComment("--"),
        LineComment("#", unless=r"[\w>-]", after=BEFORE_HASH),
    ),
    block_comments=(NESTED_SLASH_STAR,),
    strings=(
        Quotes("'", escape="doubled", over_lines=True),
        Quotes('"', escape="doubled", over_lines=True),
        Quotes("`", escape="doubled", over_lines=True),
    ),
    documentation=("--", "/*", "* ", "*/"),
    semicolons=True,
    conditional=False,
    no_comma_before=(
        r"(?i:[);]|(?:from|where|having|union|except|intersect|set|into|on|returning)\b(?!\s*[=.(])"
        r"|(?:group|order)\s+by\b|limit\s+\d"
        r"|(?:(?:left|right|full)\s+(?:outer\s+)?|inner\s+|cross\s+|natural\s+)?join\b(?!\s*[=.(]))"
    ),
)
