"""Rules of gitleaks, from its configuration, for Python's regular expressions.

Go's expressions take time linear in the text. Python's may backtrack, so that each is tried only
around the words that the rule names, in a bounded part of the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import resources
from typing import Any, cast

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from codespec.rules.secrets.values import entropy

# Found by other means: `assigned.py` reads values of names, and of options and headers of curl;
# the words of the others are so common that they cost more than all the rest, or stand for names
# of files. Forms of theirs that say enough by themselves are in `forms.py`.
_LEFT_OUT = frozenset(
    [
        "generic-api-key",
        "curl-auth-header",
        "curl-auth-user",
        "hashicorp-tf-password",
        "kubernetes-secret-yaml",
        "nuget-config-password",
        "pkcs12-file",
        "private-key",
        "sidekiq-secret",
        "twilio-api-key",
        "vault-service-token",
        "jwt",
        # Names of clients and accounts, and hashes beside the name of a service: no secrets.
        "adobe-client-id",
        "asana-client-id",
        "bitbucket-client-id",
        "discord-client-id",
        "mailgun-pub-key",
        "messagebird-client-id",
        "plaid-client-id",
        "sendbird-access-id",
        "sourcegraph-access-token",
    ]
)
_BEFORE, _STEP = 40, 500
"""Characters before and behind a word where matches may begin. Words that come as soon are not
looked at again, or a text of nothing else would take hours."""
_LEAD = r"[\w.-]{0,50}?"
# Matches the text that may stand before the name, which is never part of the secret.
_BEGINS = re.compile(r"(?:\\b|\(\?:|\(\?i\)|\()*((?:[\w~-]|\\\.)+)(?![?*+{|])")
_LEAST = 4
"""Fewest characters of a beginning that says whose a token is."""


class SecretRule:
    """One rule: the words that it asks for, in lower case, and an expression tried around them.

    Unlike gitleaks, which asks for the word anywhere in the file, the match has to hold it.
    """

    def __init__(self, table: dict[str, Any]) -> None:
        self.name: str = table["id"]
        self.words: tuple[str, ...] = tuple(table["keywords"])
        self._source: str = table["regex"]
        self._entropy: float = table.get("entropy", 0.0)
        self._group: int = table.get("secretGroup", 0)
        allowed = [a for a in table.get("allowlists", []) if a.get("condition") != "AND"]
        self._allowed = [
            expression
            for a in allowed
            if a.get("regexTarget", "secret") == "secret"
            for expression in a.get("regexes", [])
        ]

    @property
    def beginning(self) -> str:
        """The text that tokens of this form begin with and that says whose they are, as an
        expression; "" where they have none."""
        begins = _BEGINS.match(self._source)
        if begins is None or len(self.words) != 1 or _LEAD in self._source:
            return ""
        said = begins[1].replace("\\", "").lower()
        return begins[1] if len(said) >= _LEAST and said.startswith(self.words) else ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when its word is first found: most never are."""
        return re.compile(translated(self._source), re.ASCII)

    @cached_property
    def _allowed_pattern(self) -> re.Pattern[str] | None:
        joined = "|".join(f"(?:{translated(a)})" for a in self._allowed)
        return re.compile(joined, re.ASCII) if joined else None

    def matches(
        self, text: str, start: int, end: int, tried: int
    ) -> Iterator[tuple[int, int, bool]]:
        """(start, end, True if it is a secret) of matches around a word of the text, but not before
        `tried`."""
        near = max(start - _BEFORE, tried)
        for match in self.pattern.finditer(text, near, end + 2 * _STEP):
            group = self._group or next((i for i, g in enumerate(match.groups(), 1) if g), 0)
            value = match[group]
            allowed = self._allowed_pattern
            is_allowed = allowed is not None and allowed.search(value) is not None
            yield *match.span(group), entropy(value) >= self._entropy and not is_allowed
        yield end, end + _STEP, False


def load() -> list[SecretRule]:
    """The rules that are used. About 40 ms."""
    data = resources.files(__package__ or "").joinpath("gitleaks.toml").read_text("utf-8")
    tables = cast("list[dict[str, Any]]", tomllib.loads(data)["rules"])
    return [SecretRule(t) for t in tables if t["id"] not in _LEFT_OUT]


def translated(expression: str) -> str:
    """A Go regular expression for Python: flags in the middle apply to the end of their group,
    classes have other names. The part that may precede the name is left out."""
    expression = expression.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[0-9A-Za-z]")
    expression = expression.replace(_LEAD, "")
    out: list[str] = []
    n_open = [0]  # groups that flags opened, by group that is open
    in_class = False
    i = 0
    while i < len(expression):
        c = expression[i]
        if c == "\\":
            out.append(expression[i : i + 2])
            i += 2
            continue
        if in_class:
            in_class = c != "]"
        elif c == "[":
            in_class = True
        elif expression.startswith("(?i)", i):
            out.append("(?i:")
            n_open[-1] += 1
            i += 4
            continue
        elif c == "(":
            n_open.append(0)
        elif c == ")":
            out.append(")" * n_open.pop())
        out.append(c)
        i += 1
    return "".join(out) + ")" * n_open.pop()
