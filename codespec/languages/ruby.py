"""Ruby."""

from __future__ import annotations

from codespec.languages.base import BACKTICK, DOUBLE, SINGLE, Grammar, Language, LineComment, Words

DEFINITIONS = """
(class name: (_) @name) @class
(module name: (_) @name) @class
(program (method name: (_) @name) @function)
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
(assignment left: (constant) @name) @constant
"""
BLOCK = r"def|class|module|if|unless|while|until|for|case|begin|else|elsif|when|in|rescue|ensure"
LANGUAGE = Language(
    name="ruby",
    extensions=(".rb", ".rake", ".gemspec", ".ru"),
    ids=("ruby",),
    grammar=Grammar(
        module="tree_sitter_ruby",
        definitions=DEFINITIONS,
        depth=8,
        literals=("array", "hash"),
        strays=("end",),
    ),
    line_comments=(LineComment("#", unless=r"\{"),),
    strings=(DOUBLE, SINGLE, BACKTICK),
    pairs=(("|", "|"),),
    documentation=("#",),
    words=Words(
        opens={
            "end": rf"(?:^|[=(]|<<)[ \t]*(?:(?:private|protected|public)\s+)?(?:{BLOCK})\b"
            r"(?!.*(?:\bend\b|\bthen\b.*\S|\)\s*=\s|\bdef\s+[\w.?!]+\s*=\s))[^\n]*\Z"
            r"|\bdo(?:\s*\|[^|\n]*\|)?\Z"
        },
        ends=("end",),
        branches=("else ", "elsif ", "when ", "in ", "rescue ", "ensure "),
    ),
    comma_goes_on=True,
    tails=("·", "·,", "· do\nend", "\nend", "· do"),
    declares="by assignment",
)
