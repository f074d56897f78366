"""Enums that say why an answer is as it is: a key for programs, a text for people.

Those of answers that cross rooms stand here; usage and index have their own.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

_R = TypeVar("_R", bound="Reason")


class Reason(Enum):
    """Member of an enum with a text. Its value is the key: snake_case, stored, sent and compared,
    never renamed without a mapping of the former one.

    text: English, for people alone; may be said in other words at any time.
    """

    _value_: str
    text: str

    def __new__(cls: type[_R], key: str, text: str) -> _R:
        made = object.__new__(cls)
        made._value_ = key
        made.text = text
        return made


class NoSuggestion(Reason):
    """Cause of an empty answer."""

    # Before the model is asked.
    EXCLUDED = "excluded", "rules exclude the file"
    NO_PREFIX = "no_prefix", "there is no text before the cursor to complete"
    IN_SECRET = "in_secret", "the cursor is in what looks like a secret, which no server is shown"
    # With what the model wrote.
    NOTHING_TO_ADD = "nothing_to_add", "the model has nothing to add here"
    NOTHING_LEFT = "nothing_left", "nothing was left of what the model wrote"
    HELD_BACK = "held_back", "it is not likely enough to be kept (completion.eagerness)"
    NO_LINE_IN_TIME = "no_line_in_time", "the deadline passed before the first line was done"
    # The request is no longer wanted.
    CANCELLED = "cancelled", "a newer request took its place"
    SUPERSEDED = "superseded", "a newer request for this document took its place"
    CLIENT_CANCELLED = "client_cancelled", "the client cancelled"
    CLIENT_GONE = "client_gone", "the client is gone"
    DOCUMENT_CLOSED = "document_closed", "the document was closed"
    TEXT_CHANGED = "text_changed", "the text changed, or a newer request came"
    # The daemon, or its worker, has no answer.
    NO_ANSWER_IN_TIME = "no_answer_in_time", "no answer by the deadline"
    TOO_SLOW = "too_slow", "too slow"
    MODEL_NEEDED = "model_needed", "another request needs the model"
    NOT_LEFT_OFF = "not_left_off", "the model worker did not leave off for another request"
    WORKER_ENDED = "worker_ended", "the model worker ended"
    DAEMON_ENDED = (
        "daemon_ended",
        "the daemon ended during the request; ask again, or see: codespec daemon logs",
    )
    SERVER_AWAY = "server_away", "the server of the model does not answer"
    FAILED = "failed", "the daemon cannot answer"


class ShapeReason(Reason):
    """Syntax around the cursor that decides how much is suggested."""

    TEXT_AFTER = "text_after", "there is text after the cursor in its line"
    CLOSED_AFTER = "closed_after", "the line is closed after the cursor"
    ONE_LINE = "one_line", "one line was asked for"
    IN_TEXT = "in_text", "the cursor is in a string or comment"
    BLOCK_WITH_BODY = "block_with_body", "the block that the line opens has a body"
    OPENS_BLOCK = "opens_block", "the line before the cursor opens a block"
    IN_STATEMENT = "in_statement", "the cursor is within a statement"
    BETWEEN_STATEMENTS = "between_statements", "the cursor is on an empty line between statements"
    BLOCK_GOES_ON = "block_goes_on", "the block has other statements already"
    EMPTY_BLOCK = "empty_block", "the cursor is in an empty block"


class Trimming(Reason):
    """Change of a generated text before it is suggested. `text` names what was taken away, or
    put in another form."""

    STOP_TEXT = "stop_text", "a stop text and what follows it"
    UNFINISHED_LINE = "unfinished_line", "an unfinished line"
    INVISIBLE = "invisible", "invisible or bidirectional characters"
    STRANGER = "stranger", "a name, address or licence of others, which stands nowhere here"
    INDENTATION = "indentation", "indentation of another style"
    DOUBLED_INDENTATION = "doubled_indentation", "indentation that the line has already"
    REPETITION = "repetition", "repetition"
    FURTHER_LINES = "further_lines", "lines, as text follows in the cursor's line"
    SUFFIX = "suffix", "what stands after the cursor already"
    NO_VALUE = "no_value", "what is no value in this notation"
    COMMAS = "commas", "commas before what closes, or between lines that had none"
    AFTER_WHOLE_LINE = "after_whole_line", "what goes on in a line that is whole"
    UNFIT = "unfit", "brackets that do not balance, or what would not parse here"
    UNLIKELY = "unlikely", "lines that are not likely enough to be kept (completion.eagerness)"
    UNCHECKED = "unchecked", "what there was no time to check here"
