"""FIM prompts as clients write them: for a model that need not be the one that answers.

Read as plain text, markers would be continued with more markers, so the parts between them are told
apart, and the model that answers gets them in its own format. Clients' spellings are not those of
vocabularies (`fim.FAMILIES`): Code Llama's "▁<PRE>" is written "<PRE> ".

Sources: Zed, crates/edit_prediction/src/fim.rs; Continue, core/autocomplete/templating/
AutocompleteTemplate.ts; the model cards of Qwen2.5-Coder, StarCoder 2, Seed-Coder, Codestral;
Lozhkov et al. 2024, "StarCoder 2 and The Stack v2", section 5.1, for files of a repository.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class _Template(NamedTuple):
    """Markers before the prefix, the suffix and the middle, "" where the prefix comes last and
    nothing follows it; before a repository's name and each of its files, "" for none."""

    prefix: str
    suffix: str
    middle: str
    repository: str = ""
    file: str = ""


_TEMPLATES = (
    _Template("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"),
    _Template(
        "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"
    ),
    _Template("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    _Template("<PRE> ", " <SUF>", " <MID>"),
    _Template("<PRE>", " <SUF>", " <MID>"),
    _Template("▁<PRE>", "▁<SUF>", "▁<MID>"),
    _Template("[PREFIX]", "[SUFFIX]", ""),
    _Template("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|><|assistant|>\n", "<|user|>"),
    _Template("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    _Template("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
)
_CODESTRAL_FILE = re.compile(r"^\+{5} (.*)\n", re.MULTILINE)


class Parts(NamedTuple):
    """files: (name or "", text) of others that the prompt shows."""

    prefix: str
    suffix: str = ""
    files: tuple[tuple[str, str], ...] = ()


def parted(prompt: str) -> Parts:
    """The parts of a prompt that is written by some template. Any other prompt is all prefix."""
    for template in _TEMPLATES:
        found = _parted(prompt, template)
        if found is not None:
            return found
    return Parts(prompt)


def _parted(prompt: str, template: _Template) -> Parts | None:
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
    if not template.middle:
        files, prefix = _codestral_files(prefix)
    else:
        files = _files(head, template)
    return Parts(prefix, suffix, files)


def _files(head: str, template: _Template) -> tuple[tuple[str, str], ...]:
    """What stands before the document. Files have names where their repository has one."""
    if not template.file:
        return ()
    repository, *files = head.split(template.file)
    pairs = [file.partition("\n") if repository else ("", "", file) for file in files]
    # The last one may be the document's own name.
    return tuple((name.strip(), text) for name, _, text in pairs if text.strip())


def _codestral_files(prefix: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """(files, the document's own part): each begins with a line "+++++ name", the document last."""
    if not prefix.startswith("+++++ "):
        return (), prefix
    _, *rows = _CODESTRAL_FILE.split(prefix)
    if not rows:
        return (), prefix
    *files, _, own = rows
    return tuple(
        (name.strip(), text)
        for name, text in zip(files[::2], files[1::2], strict=True)
        if text.strip()
    ), own
