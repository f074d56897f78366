"""FIM prompts as clients write them: for a model that need not be the one that answers.

Read as plain text, markers would be continued with more markers, so the parts between them are told
apart, and the model that answers gets them in its own format. `families` has the spellings.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codespec.context import families
from codespec.context.families import Spelling


class Parts(NamedTuple):
    """files: (name or "", text) of others that the prompt shows."""

    prefix: str
    suffix: str = ""
    files: tuple[tuple[str, str], ...] = ()


def parted(prompt: str) -> Parts:
    """The parts of a prompt that is written by some template. Any other prompt is all prefix."""
    for family in families.FAMILIES:
        for spelling in family.spelled:
            found = _parted(prompt, spelling, family.files.heading if family.files else "")
            if found is not None:
                return found
    return Parts(prompt)


def _parted(prompt: str, template: Spelling, heading: str) -> Parts | None:
    start = 0
    if prompt.startswith(tuple(filter(None, (template.repository, template.file)))):
        places = (prompt.find(template.prefix), prompt.find(template.suffix))
        start = min((place for place in places if place >= 0), default=0)
    head, body = prompt[:start], prompt[start:]
    is_suffix_first = body.startswith(template.suffix)
    if not is_suffix_first and not body.startswith(template.prefix):
        return None
    first, second = template.prefix, template.suffix
    if is_suffix_first:
        first, second = second, first
    inner, middle, begun = body[len(first) :], "", ""
    if template.middle:
        inner, middle, begun = inner.rpartition(template.middle)
    elif not is_suffix_first:
        return None
    if middle != template.middle or inner.count(second) != 1:
        return None
    prefix, _, suffix = inner.partition(second)
    if is_suffix_first:
        prefix, suffix = suffix, prefix
    # What follows the last marker is a middle that has begun, or all that is before the cursor
    # ("<fim_prefix><fim_suffix>...<fim_middle>...").
    prefix += begun
    if heading:
        files, prefix = _headed_files(prefix, heading)
    else:
        files = _files(head, template)
    return Parts(prefix, suffix, files)


def _files(head: str, template: Spelling) -> tuple[tuple[str, str], ...]:
    """Files before the document. They have names where their repository has one, or never has."""
    if not template.file:
        return ()
    repository, *files = head.split(template.file)
    are_named = bool(repository) or not template.repository
    pairs = [file.partition("\n") if are_named else ("", "", file) for file in files]
    # The last one may be the document's own name.
    return tuple((name.strip(), text) for name, _, text in pairs if text.strip())


def _headed_files(prefix: str, heading: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """(files, the document's own part): each begins with a line of heading and name, the document
    last."""
    if not prefix.startswith(heading):
        return (), prefix
    _, *rows = re.split(rf"^{re.escape(heading)}(.*)\n", prefix, flags=re.MULTILINE)
    if not rows:
        return (), prefix
    *files, _, own = rows
    return tuple(
        (name.strip(), text)
        for name, text in zip(files[::2], files[1::2], strict=True)
        if text.strip()
    ), own
