"""E-mail addresses in a text, other than those that are reserved for examples."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LOCAL = 64
"""Characters before the sign in an address, RFC 5321."""

_LOCAL = re.compile(r"[\w.%+-]+\Z")
_DOMAIN = re.compile(r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.){1,6}([a-zA-Z]{2,12})\b")
_RESERVED = re.compile(
    r"(?:(?:.*\.)?example\.(?:com|net|org|edu)|.*\.(?:example|test|invalid|localhost|local))\Z",
    re.IGNORECASE,
)
# What stands behind a name and `@` in code looks like a domain, unless its end is a known one.
_GENERIC = (
    "com org net edu gov mil int info biz io dev app ai cloud tech online site xyz email company "
    "agency studio software systems engineering foundation jobs travel coop aero museum mobi pro"
)
_COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs "
    "bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee "
    "eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm "
    "hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb "
    "lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz "
    "na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs "
    "ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm "
    "tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
_ENDS = frozenset((*_GENERIC.split(), *_COUNTRIES.split()))


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each address, in order. An address within a URL, or of a machine that a path
    follows, is none.

    Reserved, and left out: RFC 2606 and 6761.
    """
    at = text.find("@")
    while at >= 0:
        local = _LOCAL.search(text, max(0, at - MAX_LOCAL), at)
        domain = _DOMAIN.match(text, at + 1)
        if local is not None and domain is not None:
            start, end = _begin(text, local.start()), domain.end()
            if start < at and _is_address(text, start, end) and _is_known(domain):
                yield start, end
        at = text.find("@", at + 1)


def _begin(text: str, start: int) -> int:
    """The place of the first letter or digit."""
    while not text[start].isalnum() and text[start] not in "_@":
        start += 1
    return start


def _is_known(domain: re.Match[str]) -> bool:
    return domain[1].lower() in _ENDS and _RESERVED.match(domain[0]) is None


def _is_address(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 128) : start], text[end : end + 2]
    scheme = before.rfind("://")
    is_in_url = scheme >= 0 and not any(map(str.isspace, before[scheme:]))
    is_machine = after[:1] in (":", "/") and not after[1:].isspace() and len(after) > 1
    return not (is_in_url or is_machine or text.startswith("git@", start))
