"""OCaml, without a grammar: words and indentation delimit blocks."""

from __future__ import annotations

from codespec.languages.base import DOUBLE_OVER_LINES, BlockComment, Language, Quotes, Words

LANGUAGE = Language(
    name="ocaml",
    extensions=(".ml", ".mli"),
    files=(".ocamlinit",),
    ids=("ocaml", "ocaml.interface", "ocamlinterface"),
    block_comments=(BlockComment("(*", "*)", nests=True),),
    strings=(
        DOUBLE_OVER_LINES,
        Quotes("{|", "|}", escape="none", over_lines=True),
        # A prime belongs to a name, as in `x'`, or begins a type variable.
        Quotes("'", is_character=True, after=r"(?<![\w'])"),
    ),
    characters=r"\{(?P<quoted>[a-z_]+)\|(?s:.*?)(?:\|(?P=quoted)\}|\Z)",
    documentation=("(*",),
    words=Words(
        opens={
            "end": r"\b(?:begin|struct|sig|object)(?:\s*\(\w+\))?\Z|\bbegin match\b(?!.*\bend\b)",
            "done": r"\bdo\Z",
        },
        ends=("end", "done"),
        branches=(),
    ),
    indents=r"(?<![:<>=!])=\Z|->\Z|\b(?:with|function|then|else|in|try|of|lazy|fun)\Z",
    branches=("else ", "| ", "with ", "in "),
    continues=r"(?:then|else|in|and|with|end|done|do|of)\b|[-+*/<>=&|@^,;:)\]}]",
    unfinished=r"(?:[-+*/<>=&|@^,:(]|\b(?:let|if|match|and|of|or|mod|when|as|rec))$",
    needs_next=r"\bin\Z",
    conditional=False,
    brace_is_value=True,
)
