"""A text read as JSON from what is expected at the cursor, token by token."""

from __future__ import annotations

from typing import NamedTuple

from codespec.suggest.json_around import Container, Expected, JsonAround, begins_element
from codespec.syntax.json_tokens import JsonToken, is_begun_scalar, json_tokens

_OPENER_OF = {"}": "{", "]": "["}
_KEY: tuple[Expected, ...] = ("key", "key or end")
_VALUE: tuple[Expected, ...] = ("value", "value or end", "any")
_END: tuple[Expected, ...] = ("key or end", "value or end", "end", "colon or end")
_WHOLE: tuple[Expected, ...] = ("end", "colon or end")
_BEGIN = ("{", "[", "string", "scalar")


class CommaEdit(NamedTuple):
    """Text that takes the place of characters of the text that was read."""

    start: int
    end: int
    new: str


class JsonReading:
    """A text at a place, as far as it is JSON.

    cut: how much of it may stay, None for all of it.
    changes: commas to be added and taken away, in the order of the text.
    """

    def __init__(self, around: JsonAround, text: str) -> None:
        self.text = text
        self.cut: int | None = None
        self.changes: list[CommaEdit] = []
        self._around = around
        # What is read begins with the token that the user has begun, and ends with the line.
        place = around.place
        self._all = place.line_prefix[around.start :] + text + place.rest
        self._begin = len(place.line_prefix) - around.start
        self._end = self._begin + len(text)
        self._inside: Container = around.container(0)
        self._outer: list[Container] = []  # around it, of those that the text opens
        self._n_closed = 0  # of those that it does not open
        self._expected = around.expected(self._inside)
        self._last: JsonToken | None = None
        self._whole = 0  # the end of the last value
        self._key: JsonToken | None = None
        self._read()

    def _read(self) -> None:
        for token in json_tokens(self._all, is_json5=self._around.dialect.is_json5):
            if token.start >= self._end and token.kind != "comment":
                self._end_before(token, is_below=False)
                return
            if not self._stays(token):
                return
            if token.start < self._end < token.end:
                return  # it goes on behind the text
        self._end_before(next(self._around.below(), None), is_below=True)

    def _stays(self, token: JsonToken) -> bool:
        """True if a token belongs where it stands; else `cut` says how much may stay."""
        if token.kind == "comment":
            is_fine = token.start < self._begin or self._around.has_comments
            return is_fine or self._cut_at(self._whole)
        if token.start < self._begin:
            return self._goes_on_with(token)
        if token.kind == "bad":
            return self._cut_at(self._upto_bad(token))
        if self._lacks_comma(token):
            self._add_comma(self._last.end if self._last else self._begin)
            self._expected = begins_element(self._inside)
        if not self._take(token):
            return self._cut_at(self._whole)
        self._last = token
        if self._expected in _WHOLE and not token.is_open:
            self._whole = token.end
        return True

    def _cut_at(self, end: int) -> bool:
        self.cut = min(max(end - self._begin, 0), len(self.text))
        self.changes = [change for change in self.changes if change.end <= self.cut]
        return False

    def _goes_on_with(self, token: JsonToken) -> bool:
        """True if a token that the user has begun may go on so; its beginning is not judged."""
        begun = self._all[token.start : self._begin]
        is_string = begun[0] in "\"'"
        is_json5 = self._around.dialect.is_json5
        may_be_json = is_string or is_begun_scalar(begun, is_json5=is_json5)
        if token.kind == "bad" and may_be_json and (not is_string or token.good >= self._begin):
            return self._cut_at(token.good)
        is_key = self._inside == "{" and self._expected in _WHOLE and self._around.begins_line
        if is_key:
            self._expected = "key"  # the comma above is the user's to add
        in_key = self._expected in _KEY
        if token.kind == "bad" or not self._take(token):
            self._expected = "colon" if in_key else "end"
        self._last = token
        if self._expected in _WHOLE and not token.is_open:
            self._whole = token.end
        return True

    def _upto_bad(self, token: JsonToken) -> int:
        """The end of what may stay before a token that no JSON has, or of it: of a number that is
        whole, of a string that ends with its line."""
        if self._expected not in _VALUE:
            return self._whole
        is_string = self._all[token.start] in "\"'"
        if is_string and not self._all.startswith("\n", token.good):
            return self._whole
        return token.good if token.good > token.start else self._whole

    def _lacks_comma(self, token: JsonToken) -> bool:
        """True if a token begins an element in a line below the one before it."""
        is_between = self._expected in _WHOLE and self._inside != "top"
        return is_between and self._begins_line(token) and self._begins_element(token)

    def _begins_line(self, token: JsonToken) -> bool:
        before = self._last.end if self._last else 0
        is_first = self._last is None and self._around.begins_line
        return is_first or "\n" in self._all[before : token.start]

    def _begins_element(self, token: JsonToken) -> bool:
        return token.kind in (("string", "name") if self._inside == "{" else _BEGIN)

    def _add_comma(self, at: int) -> None:
        is_apart = self._all[at : at + 1].strip() == ""
        at -= self._begin
        self.changes.append(CommaEdit(at, at, "," if is_apart else ", "))

    def _drop(self, token: JsonToken) -> None:
        self.changes.append(CommaEdit(token.start - self._begin, token.end - self._begin, ""))

    def _is_dropped(self, token: JsonToken) -> bool:
        return any(change.start == token.start - self._begin for change in self.changes)

    def _follows_comma(self) -> bool:
        last = self._last
        return last.kind == "," if last else self._around.follows_comma

    def _take(self, token: JsonToken) -> bool:
        """Goes on behind a token; False where it does not belong there."""
        kind, expected = token.kind, self._expected
        if kind == ",":
            return self._take_comma(token)
        if kind == "}" or kind == "]":
            return self._take_closer(kind)
        if kind == ":":
            self._inside = "{" if self._inside == "unknown" else self._inside
            self._expected = "value"
            return expected in ("colon", "colon or end")
        if expected in _KEY:
            is_json5 = self._around.dialect.is_json5
            self._expected, self._key = "colon", token
            return kind in ("string", "name") or (is_json5 and kind == "scalar")
        is_new = self._around.dialect.one_a_line and self._inside == "top"
        if expected not in _VALUE and not (is_new and self._begins_line(token)):
            return False
        if kind == "{" or kind == "[":
            self._outer.append(self._inside)
            self._inside = kind
            self._expected = "key or end" if kind == "{" else "value or end"
            return True
        self._expected = "colon or end" if expected == "any" and kind != "scalar" else "end"
        return kind != "name" or expected == "any"

    def _take_comma(self, token: JsonToken) -> bool:
        if self._follows_comma():
            self._drop(token if self._last is None else self._last)
            return True
        if self._expected not in _WHOLE or self._inside == "top":
            return False
        self._expected = begins_element(self._inside)
        return True

    def _take_closer(self, kind: str) -> bool:
        if self._inside not in (_OPENER_OF[kind], "unknown"):
            return False
        if self._expected not in _END:
            if not self._follows_comma():
                return False
            if not self._around.has_trailing_commas:
                if self._last is None or self._is_dropped(self._last):
                    return False  # the user's comma stays
                self._drop(self._last)
        if self._outer:
            self._inside = self._outer.pop()
        else:
            self._n_closed += 1
            self._inside = self._around.container(self._n_closed)
        self._expected = "end"
        return True

    def _end_before(self, after: JsonToken | None, *, is_below: bool) -> None:
        """Adds the comma that the text needs at its end, or takes it away, and leaves out a key
        without a value. after: the first token behind it. is_below: it stands in another line."""
        last, key = self._last, self._key
        if last is None or after is None or last.end <= self._begin:
            return
        if key is not None and key.start >= self._begin:
            lacks_colon = self._expected == "colon" and after.kind != ":"
            if lacks_colon or (last.kind == ":" and (is_below or after.kind not in _BEGIN)):
                self._cut_at(self._whole)
                return
        if last.kind == ",":
            closes = after.kind in _OPENER_OF and not self._around.has_trailing_commas
            if closes or after.kind == ",":
                self._drop(last)
            return
        is_between = self._expected == "end" and self._inside != "top" and not last.is_open
        if is_between and self._begins_element(after):
            self._add_comma(last.end)
