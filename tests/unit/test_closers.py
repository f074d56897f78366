"""Text between tags, quotes and other pairs that an editor has closed: the place is welcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codespec.languages.registry import record_of
from codespec.syntax.closers import behind_closers, closer_of_pair, place_of_closer
from codespec.usage.suppression import Suppression, why_suppressed

PROSE = replace(record_of("text"), links=True)
RECORDS = {
    "prose": PROSE, **{
        name: record_of(name)
        for name in ("c", "javascript", "latex", "markup", "php", "python", "ruby", "rust", "shell",
                     "tsx")
    }
}  # fmt: skip
WELCOME = r"""
markup      <li>‸</li>
markup      <ul><li>‸</li></ul>
markup      <p class="‸"></p>
markup      <p>Hello, ‸</p>
markup      <input ‸/>
markup      <p>{{ ‸ }}</p>
markup      {{- ‸ -}}
markup      {% ‸ %}
markup      {%- if ‸ -%}
markup      {# ‸ #}
markup      <%= ‸ %>
markup      <p><% ‸ -%></p>
markup      <!-- ‸ -->
markup      <!--‸-->
php         <p><?= ‸ ?></p>
php         $a = ['‸'];
javascript  const a = <div>‸</div>;
javascript  const a = <>‸</>;
javascript  const f = () => { return g(‸); };
tsx         {items.map((x) => <li key={x}>‸</li>)}
tsx         const a = `${‸}`;
python      a = '‸'
python      a = {"‸": {
python      '''‸'''
python      # a **‸**
javascript  /** a *‸* */
c           char c = '‸';
c           /* ‸ */
ruby        a.each { |‸| }
ruby        a.each do |b, ‸|
shell       a="$(‸)"
shell       sql="{% ‸ %}"
prose       a **‸**
prose       a **b ‸**
prose       *‸*.
prose       * an item *b‸*
prose       _‸_
prose       __‸__
prose       ***‸***
prose       **_‸_**
prose       it costs $5, where $‸$
prose       ~~‸~~
prose       `‸`
prose       “‸”
prose       see [‸](url)
prose       - [‸](docs/a.md),
prose       ![‸](a.png).
latex       where $‸$
latex       $$‸$$
latex       \(‸\)
"""
IN_THE_WAY = r"""
markup      <li>‸</li> text
markup      <li>‸text</li>
markup      <td>‸</td><td>a</td>
markup      <img src="‸" alt="">
markup      ‸ %}
python      x = foo(‸) + bar
python      x = a ‸** b
python      init__‸__(self)
python      snake‸_case
python      a = {"‸": 1}
rust        a.map(|‸|x)
ruby        a |‸| b
c           a = b ‸* c
c           *p = ‸*q
javascript  a[‸](b)
javascript  a ‸*/ b
javascript  /** a ‸b */
prose       **‸** and more
prose       a ‸**
prose       a [b] ‸](url)
prose       snake_‸case
prose       * item ‸* b
latex       ‸$x$
"""


def places(text: str) -> list[tuple[str, str]]:
    """(record, line with the cursor) of each line."""
    lines = (line.split(None, 1) for line in text.strip().splitlines())
    return [(name, line) for name, line in lines]


def why(name: str, line: str) -> Suppression | None:
    before, rest = line.split("‸")
    return why_suppressed(rest, behind_closers(before, rest, RECORDS[name]))


@pytest.mark.parametrize(("name", "line"), places(WELCOME))
def test_between_what_an_editor_has_closed_suggestions_are_welcome(name: str, line: str) -> None:
    assert why(name, line) is None


@pytest.mark.parametrize(("name", "line"), places(IN_THE_WAY))
def test_where_text_stands_behind_they_are_not(name: str, line: str) -> None:
    assert why(name, line) is not None


@pytest.mark.parametrize(
    ("name", "line", "closer"),
    [
        ("prose", "a **‸**", "**"),
        ("prose", "a **‸** b", "**"),
        ("prose", "a *‸**", ""),
        ("prose", r"a \$‸$", ""),
        ("latex", r"\(‸ \)", r"\)"),
        ("markup", "{% ‸ %}", "%}"),
        ("markup", "{% a %} ‸ %}", ""),
        ("prose", "see [‸](url)", "]("),
        ("prose", "see [a](‸)", ""),
        ("c", "c = '‸';", "'"),
        ("c", "/* ‸*/", ""),
        ("python", "(‸)", ""),
    ],
)
def test_pairs_that_are_closed_right_after_the_cursor(name: str, line: str, closer: str) -> None:
    before, rest = line.split("‸")
    assert closer_of_pair(before, rest, RECORDS[name]) == closer


def test_a_text_closes_a_pair_where_it_has_the_same_run() -> None:
    assert place_of_closer("a * b *c* d** e", "**") == len("a * b *c* d")
    assert place_of_closer("a *b* c", "**") == -1
    assert place_of_closer("name %}</p>\n%}", "%}") == len("name ")
    assert place_of_closer("name\n%}", "%}") == -1


def test_many_closers_take_linear_time() -> None:
    text = "*_" * 100_000
    assert behind_closers(text, text + "x", PROSE).endswith("x")
    assert behind_closers("(" * 100_000, ")" * 100_000, PROSE) == ""
