"""llama.vim's LlamaInstruct: a chat that asks for selected lines as an instruction changes them.

The plug-in takes any answer for the new lines, and puts it in their place when the user accepts: an
error, which it cannot read, would delete them, and an answer cut short the rest of them. In place
of these it gets a sentence, which it shows, and the lines as they are. Source: llama.vim,
autoload/llama.vim.
"""

from __future__ import annotations

from codespec.http.bodies import ChatBody
from codespec.http.dialects.base import was_cut
from codespec.requests import Completion

_SELECTION, _SUFFIX = (f"--- {name:12}{'-' * 40}\n" for name in ("SELECTION", "SUFFIX"))


def selection_in(body: ChatBody) -> str | None:
    """The selected lines of a streamed body of LlamaInstruct, "" where the document makes it
    uncertain which those are; None for any other chat."""
    system = body.messages[0].text if body.messages[0].role == "system" else ""
    if not (body.stream and f"\n{_SELECTION}" in system and f"\n{_SUFFIX}" in system):
        return None
    if system.count(_SELECTION) > 1 or system.count(_SUFFIX) > 1:
        return ""
    return system.partition(_SELECTION)[2].partition(f"\n{_SUFFIX}")[0]


def instead_of_error(why: str, selection: str) -> str:
    """The answer in place of an error."""
    sentences = (line.strip().rstrip(".") for line in why.splitlines())
    return _told(f"no answer: {'. '.join(sentences)}.", selection)


def remark(completion: Completion, selection: str) -> str:
    """A text to put behind the model's own; "" where that is whole."""
    if was_cut(completion):
        return f"\n{_told('a limit ended the answer here.', selection)}"
    return "" if completion.text.strip() else _told("the model has no answer.", selection)


def _told(sentence: str, selection: str) -> str:
    said = f"codespec: {sentence}"
    return f"{said} The selected lines follow as they were.\n{selection}" if selection else said
