"""Limits of requests, over HTTP, LSP and the daemon's socket: one table for all.

Every text, number, list, depth and count that comes from a client has its bound here. HTTP and the
socket refuse a value beyond it, naming the field, the bound and the next step; a document in an
editor is left alone, with a reason. A bound is far above any useful value, and low enough for one
request to take less than a gigabyte and a few seconds.

The types are those of the fields that clients fill in; msgspec checks them as it decodes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import msgspec

# --- whole messages --------------------------------------------------------------------------

BODY_BYTES = 4 << 20
"""Most bytes of an HTTP request's body."""
HTTP_BODIES_BYTES = 64 << 20
"""Most bytes of all HTTP requests' bodies under way; of one key, where there are several, half of
them."""
FRAME_BYTES = 16 << 20
"""Most bytes of a frame on the daemon's socket."""
HELLO_BYTES = 4096
"""Most bytes of a frame from a client that has not shown a key yet."""
MESSAGE_BYTES = 64 << 20
"""Most bytes of an editor's message, which may hold a whole document."""
SERVER_LINE_BYTES = 1 << 20
"""Most bytes of a line, or of the head, of an answer of the server that has the model."""
SERVER_STREAM_BYTES = 64 << 20
"""Most bytes of such an answer."""
DEPTH = 64
"""Most levels of lists and objects in JSON."""

# --- counts ----------------------------------------------------------------------------------

CLIENTS = 512
"""Most connections to the daemon; as many to the HTTP front."""
WAITING = 128
"""Most requests of one connection to the daemon without an answer."""
WAITING_BYTES = 4 * FRAME_BYTES
"""Most bytes of these together."""
HTTP_WAITING = 64
"""Most HTTP requests at once; with more, nobody would get an answer in time."""
HTTP_WAITING_OF_ONE = 32
"""Most HTTP requests of one key, where there are several: no one's script shuts out the others."""
DOCUMENTS = 10_000
"""Most open documents of an editor, and cells of a notebook."""
DOCUMENT_CHARS = 64 << 20
"""Most characters of an open document."""
DOCUMENT_LINES = 2_000_000
"""Most lines of an open document: each takes memory of its own."""
LINE_CHARS = 2 << 20
"""Most characters of a line of an open document: each key typed in it copies it some dozen
times."""
OPEN_CHARS = 256 << 20
"""Most characters of all open documents together."""
CHANGES = 50_000
"""Most changes of a document in one message."""
FOLDERS = 64
"""Most workspace folders of an editor: each has a process that indexes it."""
PROMPTS = 64
"""Most prompts of one HTTP request."""
STOPS = 64
"""Most stop texts."""
MESSAGES = 1024
"""Most messages of a chat."""
PARTS = 1024
"""Most parts of a text that is sent in parts."""
FILES = 256
"""Most texts of other files in a request."""
PATTERNS = 1024
"""Most patterns of `index.exclude`, and languages that are switched off."""
NAMES = 64
"""Most names in any other list: drafters, fields of an answer."""

# --- texts, in characters --------------------------------------------------------------------

TEXT_CHARS = FRAME_BYTES
"""Longest text around the cursor: a frame holds no more."""
PATH_CHARS = 4096
"""Longest path of a file, or pattern for them: no system opens a longer one that people have."""
URI_CHARS = 4 * PATH_CHARS
"""Longest URI of a document, where a character may take three."""
GRAMMAR_CHARS = 1 << 16
"""Longest grammar: reading one and following it take time, and cannot be interrupted."""
SCHEMA_CHARS = 1 << 16
"""Longest JSON schema of an output."""
SCHEMA_DEPTH = 32
"""Most schemas within schemas."""
SCHEMAS = 2000
"""Most schemas that one stands for, where alternatives repeat what stands beside them."""
SCHEMA_LENGTH = 2000
"""Greatest bound of a text's or a list's length in a schema: llama.cpp takes more for no bound."""
CHOICES = 256
"""Most texts of which an output is to be one."""
OLD_CHARS = 1 << 20
"""Longest text that a request says it rewrites: more than a model's context holds."""
STOP_CHARS = 1024
"""Longest stop text."""
NAME_CHARS = 256
"""Longest name of a language, a field, a drafter, an offer, or a key."""

# --- numbers ---------------------------------------------------------------------------------

INTEGER = (1 << 53) - 1
"""Greatest whole number of an editor, either side of 0: what JSON carries everywhere."""
TOKENS = 1 << 20
"""Most tokens: more than a model's context holds. Columns of indentation, too."""
VOCABULARY = 1 << 30
"""Most tokens to choose from: no vocabulary is larger."""
MILLISECONDS = 10**9
"""Longest time, milliseconds: eleven days."""
PENALTY = 100
LOG_ODDS = 10
"""Most log-odds, either way: one in 20,000."""


def between(least: int, most: int) -> msgspec.Meta:
    """Range of numbers, both ends in it. One without an upper end would take in infinity."""
    return msgspec.Meta(ge=least, le=most, description=f"from {least:,} to {most:,}")


def at_most(n: int) -> msgspec.Meta:
    """Bound of a list's length, or of a text's characters."""
    return msgspec.Meta(max_length=n, description=f"at most {n:,}")


Text: TypeAlias = Annotated[str, at_most(TEXT_CHARS)]
OldText: TypeAlias = Annotated[str, at_most(OLD_CHARS)]
PathText: TypeAlias = Annotated[str, at_most(PATH_CHARS)]
Uri: TypeAlias = Annotated[str, at_most(URI_CHARS)]
Grammar: TypeAlias = Annotated[str, at_most(GRAMMAR_CHARS)]
SchemaText: TypeAlias = Annotated[str, at_most(8 * SCHEMA_CHARS)]
Stop: TypeAlias = Annotated[str, at_most(STOP_CHARS)]
Name: TypeAlias = Annotated[str, at_most(NAME_CHARS)]

Id: TypeAlias = Annotated[int, between(0, (1 << 63) - 1)]
Seed: TypeAlias = Annotated[int, between(-1, (1 << 63) - 1)]
AnySeed: TypeAlias = Annotated[int, between(-(1 << 63), (1 << 63) - 1)]
Integer: TypeAlias = Annotated[int, between(-INTEGER, INTEGER)]
Count: TypeAlias = Annotated[int, between(0, TOKENS)]
CountOrAll: TypeAlias = Annotated[int, between(-1, TOKENS)]
Several: TypeAlias = Annotated[int, between(1, TOKENS)]
TopK: TypeAlias = Annotated[int, between(0, VOCABULARY)]
TokenId: TypeAlias = Annotated[int, between(0, VOCABULARY)]
AnyTopK: TypeAlias = Annotated[
    int, msgspec.Meta(description=f"any: what lies outside 0 to {VOCABULARY:,} means the nearest")
]
AnyNumber: TypeAlias = Annotated[
    float, msgspec.Meta(ge=-INTEGER, le=INTEGER, description="any: beyond its range, the nearest")
]
Offset: TypeAlias = Annotated[int, between(0, TEXT_CHARS)]
Bytes: TypeAlias = Annotated[int, between(0, 1 << 50)]
Milliseconds: TypeAlias = Annotated[float, between(0, MILLISECONDS)]
Temperature: TypeAlias = Annotated[float, between(0, 10**9)]
Share: TypeAlias = Annotated[float, between(0, 1)]
LogOdds: TypeAlias = Annotated[float, between(-LOG_ODDS, LOG_ODDS)]
Penalty: TypeAlias = Annotated[float, between(-PENALTY, PENALTY)]
RepeatPenalty: TypeAlias = Annotated[
    float, msgspec.Meta(ge=0.01, le=PENALTY, description=f"from 0.01 to {PENALTY}")
]
NotRead: TypeAlias = Annotated[
    Any, msgspec.Meta(description="not read: the message's size and depth alone bound it")
]
"""A field that is named to be refused."""


def allowed(kind: Any) -> str:
    """The allowed values of a type, in words; "" for text."""
    if kind is bool:
        return "true or false"
    base = base_of(kind)
    if get_origin(base) is tuple:
        word = get_args(base)[0]
        return f"a list of words, {_bound_of(kind)}, of {_bound_of(word)} characters each"
    if get_origin(kind) is Literal:
        return " or ".join(f'"{value}"' for value in get_args(kind))
    return range_of(kind)


def range_of(kind: Any) -> str:
    """The range of a number, in words; "" for another type."""
    base = base_of(kind)
    if base not in (int, float):
        return ""
    return f"{'a whole number' if base is int else 'a number'} {_bound_of(kind)}".rstrip()


def base_of(kind: Any) -> Any:
    """A type without its bounds."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _bound_of(kind: Any) -> str:
    """The bound of a type, in words; "" for none."""
    metas = [m for m in get_args(kind) if isinstance(m, msgspec.Meta)]
    return metas[0].description or "" if metas else ""


_BEYOND = re.compile(r"Expected `(\w+)`(?: of length)? (<=|>=) (\S+)")


def next_step(error: msgspec.ValidationError) -> str:
    """The next step for a client that sent a value beyond a bound; "" for another fault."""
    beyond = _BEYOND.match(str(error))
    if beyond is None:
        return ""
    kind, way, bound = beyond.groups()
    if kind == "str":
        return f"Shorten it to {bound} characters."
    if kind in ("array", "object"):
        return f"Send {bound} of them at most."
    return f"Send a number {'up to' if way == '<=' else 'from'} {bound}."


def is_deeper(value: Any, depth: int = DEPTH) -> bool:
    """True if decoded JSON has more levels of lists and objects than `depth`."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        level = [child for holder in level for child in _children(holder)]
        if not level:
            return False
    return bool(level)


def _children(holder: dict[str, Any] | list[Any]) -> list[dict[str, Any] | list[Any]]:
    """The values of a holder that hold further values."""
    values = holder.values() if isinstance(holder, dict) else holder
    return [value for value in values if isinstance(value, dict | list)]
