"""The record of a language: all that codespec knows of it, as data.

A language is one module of this package with its record as `LANGUAGE`; `registry` finds it there.
Patterns are regular expressions as text: they are compiled when a document first needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Escape: TypeAlias = Literal["backslash", "backtick", "doubled", "none"]
Heads: TypeAlias = Literal["colon", "case", "label", "arrow"]
Elements: TypeAlias = Literal["none", "in code", "markup"]
Declares: TypeAlias = Literal["by a word", "type first", "type last", "by assignment"]

NEVER = r"(?!)"
"""A pattern that matches nothing."""


@dataclass(frozen=True, slots=True)
class LineComment:
    """A comment, or a string that nothing closes, up to the end of its line.

    unless: the pattern that, right behind the opener, makes it something else. after: the assertion
    that has to hold before the opener. begins_line: only blanks may stand before it.
    """

    opener: str
    unless: str = ""
    after: str = ""
    begins_line: bool = False


@dataclass(frozen=True, slots=True)
class BlockComment:
    """A comment between two signs.

    nests: the comment may hold another one. after: as of a line's.
    """

    opener: str
    closer: str
    nests: bool = False
    after: str = ""


@dataclass(frozen=True, slots=True)
class Quotes:
    """A string between two signs.

    closer: "" for the opener itself. escape: how the closer is written inside the string, "doubled"
    being twice, as with "backtick", too. unless: the pattern that, right behind the closer, makes
    it a part of the string. over_lines: the string may hold line ends, else it ends with its line.
    nests: brackets that are opened in it are closed in it before its closer counts.
    code: what opens and closes code in it, in which quotes may stand; within a line.
    is_character: one character at most stands between the signs; otherwise the opener is no quote,
    as in a lifetime or a number. after: the assertion that has to hold before the opener.
    """

    opener: str
    closer: str = ""
    escape: Escape = "backslash"
    unless: str = ""
    over_lines: bool = False
    nests: bool = False
    code: tuple[str, str] = ("", "")
    is_character: bool = False
    after: str = ""


HASH = LineComment("#")
SLASHES = LineComment("//")
SLASH_STAR = BlockComment("/*", "*/")
NESTED_SLASH_STAR = BlockComment("/*", "*/", nests=True)
DOUBLE = Quotes('"')
SINGLE = Quotes("'")
DOUBLE_OVER_LINES = Quotes('"', over_lines=True)
SINGLE_OVER_LINES = Quotes("'", over_lines=True)
BACKTICK = Quotes("`", over_lines=True)
CHARACTER = Quotes("'", is_character=True)
TRIPLE_DOUBLE = Quotes('"""', over_lines=True)
TRIPLE_SINGLE = Quotes("'''", over_lines=True)
RAW_TRIPLE = Quotes('"""', escape="none", over_lines=True)
ITEM = r"\s*(?:[-*+]|\d+[.)])\s"
"""Lines that begin an item of a list, as in Markdown."""
PROSE_PAIRS = (("*", "*"), ("_", "_"), ("~", "~"), ("$", "$"))
"""Emphasis and formulas, as in Markdown."""
DOLLAR_BRACES = ("${", "}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A tree-sitter grammar and what its nodes mean.

    module, function: where the installed package has it.
    definitions: the query for symbols. One pattern a definition: @name is what it defines, the
        other capture is the definition and says its kind; the first pattern that fits counts.
        Functions in the body of a type become methods.
    depth: levels of the tree to look for definitions in. What is defined deeper is local to a
        function; guards, name spaces, modules and nested types add levels.
    constants_in_capitals: a constant is one only if its name says so.
    literals: types of nodes that are literals with elements, in which data may stand.
    prologue: types of nodes, comments apart, that may stand before a file's first comment.
    strays: words that close a block; one too many is a name to the grammar, not an error.
    forks_at_types: the grammar keeps both readings of `<` up to the end of the text.
    names_before_equals: reserved words that are names where `=` stands right behind them, which the
        grammar does not know.
    """

    module: str
    function: str = "language"
    definitions: str
    depth: int = 5
    constants_in_capitals: bool = False
    literals: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    forks_at_types: bool = False
    names_before_equals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """Words that open and close blocks.

    opens: text that closes a block -> pattern of lines of code, without comments, that open it.
        `\\1` in such a text is what the pattern's first group found.
    begins: the same for lines whose head goes on in the next line.
    ends: words that begin a line which ends a block.
    branches: words, each with a blank, that begin a line which goes on with a block. A word of
        `ends` that stands here, too, ends a block as no other word can.
    flat: a body may stand in the column of its head; then words are counted.
    """

    opens: dict[str, str]
    begins: dict[str, str] = field(default_factory=dict[str, str])
    ends: tuple[str, ...]
    branches: tuple[str, ...]
    flat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """An element of a document whose content is in another language.

    extension: of files in that language, "" for one of which nothing is known. dialects: values of
    the attribute `lang`, each an extension without its dot. unless: pattern of attributes that say
    that the content is something else.
    """

    element: str
    extension: str = ""
    dialects: tuple[str, ...] = ()
    unless: str = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDialect:
    """A kind of JSON, and what it adds to it.

    comments: there are some. trailing_commas: a comma before what closes is wrong, right, or right
    where the document has one elsewhere. is_json5: keys are names, too, strings and numbers as in
    JavaScript. one_a_line: each line is a value.
    """

    comments: bool = False
    trailing_commas: Literal["wrong", "as elsewhere", "right"] = "wrong"
    is_json5: bool = False
    one_a_line: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """Facts about a language; what is left out is as in C's family.

    name: what codespec calls it, in the index and in the tests.
    extensions: ends of file names, with their dot, in small letters. files: whole names of files,
        in small letters; longer ones may begin with them up to a dot, or have more between their
        first word and their extension. `folder/*.extension` names all of a folder. ids: editors'
        identifiers, as of LSP. yields_to: languages that an editor may name for a file with these
        extensions.
    shared: those of the extensions that files in these languages have, too. others_say: pattern of
        what only those say, from the beginning of a line.

    line_comments, block_comments, strings: in the order in which they are tried. characters:
        pattern of characters written without quotes, escaped ones among them. text: pattern of code
        whose brackets and quotes are signs of text. heredocs: pattern of
        what begins a text up to a line that repeats a word, its group `here`, as in shells.
        case_label: pattern of what stands before a `)` that ends the label of a case. pairs:
        (opener, closer) of other signs that text stands between and editors close, as emphasis and
        formulas do; if both are one sign, runs of it. links: they are written as `[text](address)`.
    prose: most of it is no code, or nothing is known of it: no bracket and no quote is judged.

    documentation: what begins lines that are comments. docstring: the quotes of documentation that
        is a string.
    words: words that open and close blocks. elements: tags do, in code or as all there is.
    sections: elements that hold another language. fences: so do lines between two of signs, of
        which the first names it.
    heads: what ends a line whose block is told by its indentation: any colon, the colon of a case,
        a label, an arrow. indents: pattern of further ones. branches: what begins lines that go on
        with such a block. item: sign, with a blank, of an item of a list, which may stand in the
        column of its key. holds: pattern of a line of prose to which what is further in below it
        belongs. by_tab: lines in such blocks begin with a tab. text_blocks: pattern of
        a line below which what is further in is text. prose_lines: pattern of a line that begins
        prose, or goes on with it, its first sign literal; and of such lines the one that ends it.
    needs_next: pattern of code that needs the statement below it in its column.

    semicolons: statements end with one. line_ends: a line end that may end a statement does.
    continues: pattern of what, at the beginning of a line, goes on with the statement above it; "":
        as in C. unfinished: pattern of code that no statement ends with; "": as in C.
    comma_goes_on: no statement ends with a comma. clauses: words that begin a line which goes on
        with a head. conditional: `a ? b : c` is an expression. brace_is_value: a brace that begins
        a line opens no body. types_in_angles: `<` may open a list of types. preprocessor: its
        directives and labels stand further out than their block. bracket_attributes: attributes
        stand in square brackets above what they belong to.

    tails: what a half-typed statement may need behind brackets that are closed after the cursor,
        which stand for the dot; (): as in C. import_head, import_tail: pattern of the beginning of
        an import, and what such a line needs. probes: what makes a statement of a name.
    checker: a second judge of syntax beside the grammar, by the name it has in `suggest.fit`.
    declares: how variables of a function come about: by a word such as `let`, with their type
        before or after them, or by being assigned to.
    json: how it differs from JSON, None for all that is no data of that kind. no_comma_before:
        pattern of code before which no comma stands, unless the document has one there.
    """

    name: str
    extensions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    others_say: str = NEVER
    grammar: Grammar | None = None

    line_comments: tuple[LineComment, ...] = ()
    block_comments: tuple[BlockComment, ...] = ()
    strings: tuple[Quotes, ...] = (DOUBLE,)
    characters: str = ""
    text: str = ""
    heredocs: str = ""
    case_label: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    links: bool = False
    prose: bool = False

    documentation: tuple[str, ...] = ("//", "/*", "* ", "*/")
    docstring: str = ""
    words: Words | None = None
    elements: Elements = "none"
    sections: tuple[Section, ...] = ()
    fences: bool = False
    heads: Heads = "case"
    indents: str = ""
    item: str = ""
    holds: str = ""
    by_tab: bool = False
    text_blocks: str = ""
    prose_lines: tuple[str, str] = ("", "")
    needs_next: str = NEVER
    branches: tuple[str, ...] = ()

    semicolons: bool = False
    line_ends: bool = False
    continues: str = ""
    unfinished: str = ""
    comma_goes_on: bool = False
    clauses: tuple[str, ...] = ()
    conditional: bool = True
    brace_is_value: bool = False
    types_in_angles: bool = False
    preprocessor: bool = False
    bracket_attributes: bool = False

    tails: tuple[str, ...] = ()
    import_head: str = ""
    import_tail: str = ""
    probes: tuple[str, ...] = ()
    checker: str = ""
    declares: Declares = "by a word"
    json: JsonDialect | None = None
    no_comma_before: str = NEVER

    @property
    def is_code(self) -> bool:
        """True if a grammar, words or indentation tell where its statements and blocks end."""
        return self.grammar is not None or self.words is not None or self.indents != ""

    @property
    def is_markup(self) -> bool:
        """True if a document is elements and text, not code."""
        return self.elements == "markup"
