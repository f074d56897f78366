"""Any secret at any place of any code is cut, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codespec.rules.secrets import find, masked, spans_left, without_secrets
from tests import planted

WORDS = st.text("abcdefgh_ =().,:[]{}", min_size=0, max_size=60)
LINES = st.lists(WORDS, max_size=12).map(lambda lines: "".join(f"{line}\n" for line in lines))


@st.composite
def secrets(draw: st.DrawFn) -> tuple[str, str]:
    """(secret, the line it stands in)"""
    seed = draw(st.integers(0, 10_000))
    if draw(st.booleans()):
        secret = draw(st.sampled_from(sorted(planted.forms(seed).items())))[1]
        return secret, draw(st.sampled_from(["x = '%s'", "# %s", "f(%s)", '{"a": "%s"}'])) % secret
    return draw(st.sampled_from(sorted(planted.assignments(seed).items())))[1]


@given(LINES, secrets(), LINES)
def test_a_secret_is_cut_and_the_rest_stays(
    before: str, planted: tuple[str, str], after: str
) -> None:
    secret, line = planted
    text = f"{before}{line}\n{after}"
    left = without_secrets(text)
    assert secret[:24] not in left
    assert secret[-16:] not in left
    assert left.startswith(before)
    assert left.endswith(f"\n{after}")
    assert left.count("\n") == text.count("\n")


@given(LINES, st.text(max_size=300), LINES)
def test_what_is_kept_and_what_is_cut_are_the_text(before: str, middle: str, after: str) -> None:
    text = before + middle + after
    found = find(text)
    pieces = [*spans_left(found, 0, len(text)), *((start, end) for start, end, _ in found)]
    assert "".join(text[a:b] for a, b in sorted(pieces)) == text
    raw = text.encode("utf-8", "replace")
    hidden = masked(raw, find(raw))
    assert [len(line) for line in hidden.split(b"\n")] == [len(n) for n in raw.split(b"\n")]
