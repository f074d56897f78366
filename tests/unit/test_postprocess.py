"""Ends of completions and trimming, on text. More cases, as files: tests/golden."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer
from codespec.languages.registry import record_of, records
from codespec.reasons import ShapeReason, Trimming
from codespec.suggest import (
    Candidate,
    Judge,
    Late,
    Place,
    Shape,
    UnitStop,
    finish,
    fit,
    place_in,
    shape_at,
)
from codespec.suggest.finish import Finished
from codespec.syntax.lexer import COUNT, scan
from codespec.syntax.markup import section
from codespec.syntax.trees import ParsedDocument, TreeCache
from codespec.types import Finish
from codespec_bench.places import FINISHED, places_in

TOKENIZER = ByteTokenizer()


def complete(
    prefix, generated, suffix="", path="", multiline=True, healed=b"", ended: Finish = "stop"
):
    """The inserted text if the model generates this text, byte by byte."""
    place = place_in(TreeCache(), prefix, suffix, path)
    shape = shape_at(place, multiline=multiline)
    stop = UnitStop(TOKENIZER, shape, place, len(healed))
    emitted = []
    for token in healed + generated.encode():
        emitted.append(token)
        if stop(emitted):
            break
    text = TOKENIZER.decode(emitted)[len(healed) :].decode("utf-8", "ignore")
    return finish(Candidate(place, text), stop.end(text), ended, shape).text


@pytest.mark.parametrize(("before", "after"), [(20_000, 0), (0, 20_000), (20_000, 20_000)])
def test_little_of_an_enormous_line_is_looked_at(before, after):
    code = "f(1); " * 4_000
    place = place_in(TreeCache(), f"a\n{code[:before]}", f"{code[:after]}\nb", "a.js")
    assert place.parsed is None
    assert len(place.prefix) <= 16_000 >= len(place.suffix)
    assert complete("a\nf(" + code[:before], "g(1)", f"){code[:after]}\nb", "a.js") == "g(1)"


@pytest.mark.slow
@pytest.mark.parametrize("goes_on", [False, True], ids=["ends", "goes on"])
@pytest.mark.parametrize("kind", ["line", "inline", "block", "below", FINISHED])
def test_a_model_that_says_what_stood_there_is_left_alone(kind, goes_on):
    """On this project's own files: whether the model ends by itself or writes the rest of the
    file, too, what is inserted is what was cut out."""
    places = places_in(Path(__file__).parents[2], 25, (kind,))
    assert len({p.language for p in places}) >= 2
    wrong = [
        (p.path.name, p.truth)
        for p in places
        if complete(
            p.prefix,
            p.truth + p.suffix[:200] if goes_on else p.truth,
            p.suffix,
            str(p.path),
            ended="length" if goes_on else "stop",
        ).strip()
        != p.truth.strip()
    ]
    # A line that stands twice in a file may be taken for a repetition.
    assert len(wrong) <= len(places) // 25, wrong


def test_single_line():
    assert complete("x = ", "1\ny = 2", multiline=False) == "1"
    assert complete("def f():", "\n    return 1\n    x", path="a.py", multiline=False) == ""


def test_held_back_bytes_are_not_inserted_again():
    assert complete("    ret", "urn x\n", healed=b"ret", multiline=False) == "urn x"


def test_half_a_character_is_dropped():
    generated = "é𝒳".encode()[:4].decode("utf-8", "ignore")
    assert complete("", generated) == "é"


def test_the_same_end_token_by_token_as_at_once():
    """`UnitStop` may not change its mind as more text comes."""
    prefix = "class A:\n    def f(self):\n        "
    text = "if a:\n            b()\n        else:\n            c()\n        d()\n\n    e\n"
    place = Place(prefix, "", "python")
    stop = UnitStop(TOKENIZER, shape_at(place), place)
    ends = [stop.end(text[:n]) for n in range(len(text) + 1)]
    certain = [end for end in ends if end is not None]
    assert certain
    assert set(certain) == {certain[0]}
    assert all(end is not None for end in ends[ends.index(certain[0]) :])


WORDS = ["a", ".x", "else", "finally", "where", "\n", "\n", "\n    ", "\n\n", "\n.y()", " ", "é"]
BLOCKS = ["\nend", "\n}", " else {", " do", "do |x|", "\ncase 1:", "\ndefault:", "\nelse", "[A]"]
BLOCKS += [" then", "\ndo", "\nfi", "\nesac", "<<A", "\nA\n", " ->", "fn x", "\n|> a", "b)"]
BLOCKS += [
    "<a>",
    "<b\n",
    "</a>",
    "<br>",
    "{#if a}",
    "\n{/if}",
    "<% end %>",
    "\n{% endif %}",
    "<!--",
    "-->",
]
SIGNS = ["f(", "(1,", ")", "[", "]", "{", "}", '"', "/*", "*/", "//", "#", ":", ";", ",", "+", "."]


@given(
    st.lists(st.sampled_from([*WORDS, *SIGNS, *BLOCKS]), max_size=30).map("".join),
    st.sampled_from(
        ["", "x = ", "x = 1", "if x", "f(1, ", "  if x {", "switch x {", "  f(", "  def f"]
    ),
    st.sampled_from(
        [
            "python",
            "javascript",
            "c",
            "ruby",
            "lua",
            "csharp",
            "go",
            "shell",
            "elixir",
            "markup",
            "",
        ]
    ),
    st.integers(1, 9),
)
@example("\n\nif (a) {\n}\n", "x = 1;", "c", 1)
@example("a\nfinally\n.y()\n.z()", "x = ", "c", 3)
@example("a\n\n...b\n", "x = ", "c", 1)
def test_what_was_looked_at_before_makes_no_difference(text, prefix, language, n_bytes):
    """Token by token, or of a shorter text again, as of a text that is new."""
    place = Place(prefix, "", language)
    shape = shape_at(place)
    stop = UnitStop(TOKENIZER, shape, place)
    raw = text.encode()
    for n in range(0, len(raw) + n_bytes, n_bytes):
        here = raw[:n].decode("utf-8", "replace")
        assert stop(raw[:n]) == (UnitStop(TOKENIZER, shape, place).end(here) is not None)
    for n in range(len(text)):
        for shown in (text, text[:n]):
            assert stop.end(shown) == UnitStop(TOKENIZER, shape, place).end(shown)


@pytest.mark.parametrize(
    ("prefix", "line", "language"),
    [
        ("x = f(1, ", '\n    row("k", 12),', "python"),
        ("x = y", "\n    .row(12)", "javascript"),
        ("def f():\n    ", 'x = """\nselect\n"""\n    ', "python"),
    ],
)
def test_a_statement_of_many_lines_is_scanned_once_a_line(prefix, line, language):
    place = Place(prefix, "", language)
    stop = UnitStop(TOKENIZER, shape_at(place), place)
    before = COUNT.n_texts + COUNT.n_extensions
    emitted = []
    for token in (line * 150).encode():
        emitted.append(token)
        assert not stop(emitted)
    assert COUNT.n_texts + COUNT.n_extensions - before <= 2 * 150 + 1


@pytest.mark.parametrize("ended", ["deadline", "length"])
def test_a_line_that_was_being_written_is_not_shown_with_finished_ones(ended):
    prefix = "def f():\n    "
    assert complete(prefix, "a = 1\n    b = ", path="a.py", ended=ended) == "a = 1"


def test_an_only_line_that_was_being_written():
    assert complete("x = ", "abc", ended="deadline") == ""
    assert complete("x = ", "abc", ended="length") == "abc"


@pytest.mark.parametrize(
    ("text", "language", "n_open", "n_extra", "inside"),
    [
        ("f(a[1], {", "python", 2, 0, ""),
        ("f('(') # (", "python", 1 - 1, 0, "comment"),
        ('x = """ ( ', "python", 0, 0, '"""'),
        ('x = """ ( """', "python", 0, 0, ""),
        ("fn f<'a>(x: &'a str", "rust", 1, 0, ""),
        ("c = '(' + \"(\"", "java", 0, 0, ""),
        ("a) + b]", "c", 0, 2, ""),
        ("/* ( */ (", "c", 1, 0, ""),
        ("x = `${", "javascript", 0, 0, "`"),
        ('x = "a\\\\"', "c", 0, 0, ""),
        ('x = "a\\"', "c", 0, 0, '"'),
        ("don't (", "text", 1, 0, ""),
    ],
)
def test_scanning(text, language, n_open, n_extra, inside):
    found = scan(text, language)
    assert (len(found.open), len(found.extra), found.inside) == (n_open, n_extra, inside)


@given(
    st.text(alphabet="ab\n ()[]{}'\"`#/*\\:;", max_size=80),
    st.sampled_from(["python", "go", "lua"]),
)
def test_closers_close_what_is_open(text, language):
    found = scan(text, language)
    if found.inside == "comment" or text.endswith("\\"):
        return
    again = scan(text + found.closers, language)
    assert not again.open
    assert not again.inside


FAMILY, RED_HEART, ENGLAND = (
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u2764\ufe0f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        *((s, s) for s in (FAMILY, RED_HEART, ENGLAND, "1\ufe0f\u20e3", "\U0001f44d\U0001f3fd")),
        *((s, s) for s in ("\u0645\u06cc\u200c\u062e", "\u0915\u094d\u200d\u0937", "e\u0301")),
        ("a\u200db\ufe0fc", "abc"),
        (f"{RED_HEART}\ufe0f\u200d", RED_HEART),
        ("\U0001f44d\u200d\u202e", "\U0001f44d"),
        ("\u2066\u0645\u202e", "\u0645"),
        ("\U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f3f4"),  # a text that nobody sees
    ],
    ids=ascii,
)
def test_what_belongs_to_a_character_that_is_seen_is_kept(said, shown):
    for before in ("", "x"):
        assert complete(f'x = "{before}', f'{said}"', path="a.py") == f'{shown}"'


def test_a_character_may_begin_before_the_cursor():
    assert complete('x = "\u2764', '\ufe0f"', path="a.py") == '\ufe0f"'
    assert complete('x = "\U0001f468\u200d', '\U0001f469"', path="a.py") == '\U0001f469"'
    assert complete('x = "a\u202e', '\ufe0f\u202e"', path="a.py") == '"'


CODE = st.text(alphabet="abx = ()[]{}:;\n\t\"'#/\u202e", max_size=60)


@given(
    CODE,
    CODE,
    CODE,
    st.sampled_from([f"a.{s}" for s in ("py", "js", "c", "rs", "sh", "ex", "vue", "txt")]),
)
@example(prefix=chr(34), suffix="", generated=":", path="a.c")
def test_any_text_is_finished_to_something_that_fits(prefix, suffix, generated, path):
    """Never an exception, never more lines than were generated but closing ones, nothing
    invisible, and no line that hangs over white space."""
    text = complete(prefix, generated, suffix, path)
    assert "\u202e" not in text
    assert text == "" or text.strip()
    kept = "".join(text.split())
    wanted = "".join(generated.replace("\u202e", "").split())
    n_same = len(kept) - len(kept.lstrip(wanted)) if not wanted else 0
    assert n_same == 0
    for n in range(len(kept), -1, -1):
        if wanted.startswith(kept[:n]):
            # Only what closes brackets and quotes is added, and the statement with them.
            closing = ")]}\"'`" + (";" if path in ("a.c", "a.rs") else "")
            assert set(kept[n:]) <= set(closing)
            break


# (prefix, generated, suffix, path): what takes many trials.
TRYING = [
    ("function f() { return {", "':f(1){ return f(2){ ':f(3){ '", "b: 1, c: 2}", "a.js"),
    ("def f():\n    x = {", "1, 2), (3, [4", "'b': 1}\n    return x\n", "a.py"),
    ("int t[] = {v((", "t) 0x10, 0x11", "\n{ 1 },\n{ 2 },\n};\n", "a.c"),
    ("f(", "a)) ]", "", "a.txt"),
]


class Trying:
    """One place that is finished again and again. n_parses: what that took the last time."""

    def __init__(self, case: tuple[str, str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        prefix, self._text, suffix, path = case
        parsed = TreeCache().update(path, "", (prefix + suffix).encode())
        self._place = Place(prefix, suffix, parsed.language if parsed else "", parsed)
        self._judge = Judge(self._place)
        self.n_parses = 0
        parse = ParsedDocument.with_change

        def counted(*args):
            self.n_parses += 1
            return parse(*args)

        monkeypatch.setattr(ParsedDocument, "with_change", counted)

    def finished(self, late_after: int = 1000) -> Finished:
        """Finish a suggestion as if there were no time left after so many parses."""
        self.n_parses = 0
        return self.finished_until(lambda: self.n_parses >= late_after)

    def finished_until(self, late: Late) -> Finished:
        said = Candidate(self._place, self._text)
        return finish(said, None, "stop", shape_at(self._place), self._judge, late)

    def forget(self) -> None:
        """A judge remembers what it asked for the same place before."""
        self._judge = Judge(self._place)


@pytest.mark.parametrize("case", TRYING, ids=lambda case: case[3])
def test_without_time_nothing_is_parsed_any_more(case, monkeypatch):
    trying = Trying(case, monkeypatch)
    whole, n_parses = trying.finished(), trying.n_parses
    assert trying.finished(0).text == ""
    assert trying.finished(0).trimmed[-1] == Trimming.UNCHECKED
    for n in range(n_parses):
        trying.forget()
        assert trying.finished(n).text == ""
        assert trying.n_parses == n
        assert trying.finished() == whole  # as if it had not been left off


def test_a_long_parse_is_left_off_on_its_way(monkeypatch):
    """All of a line is read, however long it is."""
    long_line = f"\n    return x\nDATA = [{'1, ' * 20_000}]\n"
    trying = Trying(("def f():\n    x = {", "'a': (1, [2", long_line, "a.py"), monkeypatch)
    whole, n_parses = trying.finished(), trying.n_parses
    trying.forget()
    assert trying._place.parsed is not None
    trying._place.parsed._known.clear()
    n_asked = 0

    def late():
        nonlocal n_asked
        n_asked += 1
        return n_asked > 20

    trying.n_parses = 0
    assert trying.finished_until(late).trimmed[-1] == Trimming.UNCHECKED
    assert trying.n_parses < n_parses
    assert trying.finished() == whole


HOSTILE = ["<a>", "</b>", "{#a", "{{#", "<div ", "{% if ", "<% if ", "<!--", '<a b="', "<script>"]
HOSTILE += ["a)", "<<A\n", "case a in\n", "\\", "'", "if a\n", "fn ", "do\n", "</script"]


@pytest.mark.slow
@pytest.mark.parametrize("language", [r.name for r in records() if r.words or r.is_markup])
@pytest.mark.parametrize("again", HOSTILE, ids=ascii)
def test_fifty_kilobytes_of_anything_are_read_once(language, again):
    """A rule whose time grows with the square of the text would take minutes."""
    text = again * (50_000 // len(again))
    line = Place(text, "\n" + text, language)
    stop = UnitStop(TOKENIZER, Shape("statement", ShapeReason.IN_STATEMENT, body=True), line)
    stop.end(f"{again}\n{again}")
    assert len(fit.fit(Candidate(line, again), Judge(line))) <= len(text)


@pytest.mark.parametrize(
    ("prefix", "suffix", "extension"),
    [
        ("<template/>\n<script>\na", "\n</script>", ".js"),
        ("<script setup lang='ts' generics=\"T extends A<B>\">\na", "\n</script>", ".ts"),
        ("<script type=module>\na", "</script>", ".js"),
        ('<script type="application/json">\na', "</script>", ""),
        ("<style scoped>\na", "</style>", ".css"),
        ("<script>a</script>\na", "<script></script>", None),
        ("<script>\na", "\n<p>", None),  # its end is to be written
        ("<script>\na", "\n<p>\n<script></script>", None),
        ("<scripts>a", "</scripts>", None),
    ],
)
def test_the_script_that_the_cursor_is_in(prefix, suffix, extension):
    found = section(prefix, suffix, record_of("markup").sections)
    assert (found and found[2]) == extension
    if found is not None:
        assert prefix[found[0] :].strip() == "a"
        assert not suffix[: found[1]].strip()


# In Vim script, a quote that nothing closes begins a comment.
@pytest.mark.parametrize("language", [*(r.name for r in records() if r.strings), ""])
def test_a_text_that_ends_within_an_escape_is_scanned_once(language):
    """A pattern that fails there looks again from each quote before it, for minutes."""
    text = '"' + '\\"' * 100_000 + "\\"
    knows = any(quotes.opener == '"' for quotes in record_of(language).strings)
    inside = "comment" if language == "vim" else '"'
    assert scan(text, language).inside == (inside if knows else "")
