"""Values assigned to a name that secrets have, in any notation: in code, in settings, in JSON, YAML
or XML, in headers and options.

A name alone says little (`token = next_token(text)`), so that the value has to look like a secret.
"""

from __future__ import annotations

import re

from codespec.rules.secrets.values import is_password, is_random

_KEYS = (
    *(
        "api",
        "access",
        "private",
        "secret",
        "account",
        "master",
        "encryption",
        "encrypt",
        "signing",
    ),
    *("license", "deploy", "service", "storage", "shared", "session", "client", "auth", "app"),
    *("consumer", "admin", "crypto", "cipher", "aes", "hmac", "jwt", "subscription", "ssh", "host"),
    *("preshared", "server", "root", "user", "write", "read", "project", "bot", "webhook"),
)
PASSWORD_WORDS = ("pass", "pwd", "kennwort")
SECRET_WORDS = (
    *("secret", "token", "credential", "creds", "auth", "bearer"),
    *(f"{kind}{joint}key" for kind in _KEYS for joint in ("", "_", "-", ".", " ")),
)

# The rest of the name after the word.
_REST = r"(?P<rest>[\w.$-]{0,40})"
_QUOTE = r"\\?[\"'`]"
_TYPE = r"(?:[ \t]*:[ \t]*[A-Za-z_][\w.|?<>\[\] ]{0,30}(?==))?"


# What may stand between the sign and the quote: the end of the line, what opens a list or a group.
_BETWEEN = (
    r"(?:\s{0,20}|\s?\\\n\s{0,20})"
    r"(?:(?:[(\[{]|new[ \t]\w+\(|-[ \t])\s{0,20})?"
)


def _quoted(name: str) -> str:
    return (
        rf"[bBrRuUfF@$]{{0,2}}(?P<{name}_by>{_QUOTE})"
        rf"(?P<{name}>(?:(?!(?P={name}_by))[^\n\\\"`]|\\[^\n]){{8,2000}})"
    )


# Without quotes it may as well be a part of the program: nothing that is called or looked up.
_BARE = (
    r"(?:[ \t]{0,20}|[ \t]{0,4}[>|][+-]?\s{1,20}|\s{1,20}-[ \t]{1,4})"
    r"(?P<bare>[\w+/~!@#%^*-]{8,2000}={0,2})(?=[\s\"'`<,;)}\]&\\]|\Z)"
)
# The name may be quoted, an index, or a tag; a call is given it and the value, or is named so.
_IS_GIVEN = (
    rf"(?P<closed>{_QUOTE})?[\])]?{_TYPE}[ \t]*"
    rf"(?:(?:=>|:=|\?=|\|\|=|[=!]==?|=|:|\(|>|<-|\{{|(?<=[ \t])(?=[\"']))"
    rf"{_BETWEEN}{_quoted('given')}"
    rf"|(?(closed),|(?!))[ \t]{{0,4}}{_quoted('beside')}"
    rf"|(?:=>|:=|\?=|=|:|>|<-|[ \t](?=\S{{8}})){_BARE})"
)
_GIVEN = re.compile(_REST + _IS_GIVEN)
# A text in parts goes on in the same place.
_GOES_ON = re.compile(
    rf"{_QUOTE}\s{{0,40}}[+.&\\]?\s{{0,40}}{_QUOTE}(?P<part>[^\n\\\"'`]{{8,2000}})(?={_QUOTE}|\Z)"
)
_NAME = re.compile(r"[\w.$-]{0,40}\Z")
# `tokenizer`, `passed`, `author`, `secretary`; what a secret is called, or where it is to be found.
_OTHER_WORD = re.compile(
    r"i[sz]|ed(?![a-z])|es|ing|age|able|or[si]|ary|ent(?![a-z])|iv|enger|thr|port|s?[-_ ]?manager",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"""(?:^|[_.-]|(?<=[a-z])(?=[A-Z])|(?<=pass)(?=[a-z]))
    (?:ids?|ur[li]s?|endpoint|files?|filename|path|dir|names?|types?|kind|fields?|headers?|label
    |len(?:gth)?|size|count|limit|max|min|format|regexp?|pattern|class|model|algo(?:rithm)?|method
    |issuer|audience|scopes?|expir\w*|ttl|timeout|age|at|date|time|prefix|suffix|param\w*|attr\w*
    |column|table|title|message|msg|error|help|hint|description|text|url_?path|provider|backend
    |version|policy|rules?|status|state|usage|validator|input|element|selector|alias|arn|ref
    |fingerprint|thumbprint|checksum|digest|hash|hashed|hashers?|host|domain|mode|flow|code_?challenge)$""",
    re.VERBOSE | re.IGNORECASE,
)
_PUBLIC = re.compile(
    r"public|pub_?key|csrf|xsrf|nonce|page|next|cursor|continuation|sync|token_?id", re.IGNORECASE
)
_NOT_GIVEN = re.compile(
    r"\w{2,12}://|(?:sha|md)\d+[-:=$]|data:|arn:|[^/]*/\d{8}/|[$@]|(?:pbkdf2|[bs]crypt|argon2)"
)
_ENOUGH = 200
"""Characters of a value that are enough to judge it by."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def value_at(text: str, start: int, end: int, is_for_password: bool) -> tuple[int, int] | None:
    """Place of the value that is assigned to a name, if it looks like a secret; else None.

    start, end: place of a word in the name.
    is_for_password: True for a word by which passwords are named.
    """
    match = _GIVEN.match(text, end)
    if match is None:
        return None
    rest = match["rest"]
    if _OTHER_WORD.match(rest) or _NO_SECRET.search(rest):
        return None
    before = _NAME.search(text, max(0, start - 40), start)
    name = (before[0] if before is not None else "") + text[start:end] + rest
    if _PUBLIC.search(name):
        return None
    group = next(g for g in ("given", "beside", "bare") if match[g] is not None)
    value = match[group][:_ENOUGH]
    if _NOT_GIVEN.match(value) or " " in value.strip():
        return None
    is_of_request = "token" in name.lower() and not name.endswith("_authToken")
    if _UUID.fullmatch(value) and is_of_request:
        return None
    if group == "bare" and not any(map(str.isdigit, value)):
        return None
    if not (is_random(value, 12) or (is_for_password and is_password(value))):
        return None
    first, last = match.span(group)
    while (more := _GOES_ON.match(text, last)) is not None and is_random(
        more["part"][:_ENOUGH], 12
    ):
        last = more.end()
    return first, last
