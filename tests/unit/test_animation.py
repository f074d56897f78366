"""The moving picture of README: drawn from frames, and small."""

from __future__ import annotations

import re
from pathlib import Path

from tests.editors.neovim.animation import animated
from tests.editors.neovim.painted import PaintedScreen, Painting, Style

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "neovim.svg"
INK = Style(0xFFFFFF, 0)


def painting(at_s: float, *rows: str) -> Painting:
    return Painting(tuple(((row, INK),) for row in rows), (0, 0), True, at_s, 0)


def test_a_row_is_drawn_once_and_shown_while_it_stands_there() -> None:
    svg = animated(
        [
            painting(0, "same", "before"),
            painting(1, "same", "before"),
            painting(2, "same", "after"),
        ],
        most_s=1.0,
    )
    assert svg.count(">same<") == svg.count(">before<") == svg.count(">after<") == 1
    [hidden] = re.findall(r'<g display="none">.*', svg)  # the last frame is seen without animation
    assert "before" in hidden
    # Two seconds of waiting are cut to one; the last frame stays for two and a half.
    assert svg.count('dur="3.500s"') == 2
    assert f'keyTimes="0.00000;{1 / 3.5:.5f}" values="inline;none"' in hidden


def test_text_is_escaped_and_colours_are_kept() -> None:
    styled = Style(0x80A0C0, 0x202020, strikethrough=True)
    svg = animated([Painting(((("a < b", styled),),), (0, 3), False, 0, 0)], 1.0, "x & y")
    assert ">a &lt; b<" in svg
    assert "x &amp; y" in svg
    assert '#80a0c0" text-decoration="line-through"' in svg
    assert 'fill="#202020"' in svg


def test_a_screen_keeps_styles_of_cells() -> None:
    screen = PaintedScreen()
    screen.redraw(
        [
            ["default_colors_set", [0xEEEEEE, 0x111111, 0]],
            ["hl_attr_define", [7, {"foreground": 0xFF0000, "bold": True}]],
            ["grid_resize", [1, 4, 1]],
            ["grid_clear", [1]],
            ["grid_line", [1, 0, 1, [["a", 7], ["b"]]]],
            ["mode_change", ["insert", 1]],
            ["flush", []],
        ]
    )
    [found] = screen.paintings
    plain = Style(0xEEEEEE, 0x111111)
    assert found.rows == (
        ((" ", plain), ("ab", Style(0xFF0000, 0x111111, bold=True)), (" ", plain)),
    )
    assert found.is_inserting


def test_the_picture_is_small_and_shows_a_next_edit_and_a_completion() -> None:
    svg = PICTURE.read_text("utf-8")
    assert len(svg) < 1 << 20
    assert "<script" not in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    text = re.sub(r"<[^>]*>", "", svg)
    assert "(1 of 5)" in text
    assert "line-through" in svg
    assert '_shortcut("HEAD", rule, options)' in text
