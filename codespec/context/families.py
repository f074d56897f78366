"""Fill-in-the-middle formats of model families: one record each, to write prompts for models and to
read prompts that clients wrote.

A model's family is found by its vocabulary (`family_in`), which gives its prompts in ids; a model
that takes text gets `Family.prompt`. Clients' spellings are not all those of vocabularies: Code
Llama's "▁<PRE>" is written "<PRE> " (`templates`).

Sources: the model cards of Code Llama, DeepSeek Coder, CodeGemma, Codestral, Seed-Coder, Mellum,
Qwen2.5-Coder, StarCoder 2; Lozhkov et al. 2024, "StarCoder 2 and The Stack v2", section 5.1;
Continue, core/autocomplete/templating/AutocompleteTemplate.ts; Zed, crates/edit_prediction/src/
fim.rs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codespec.context.fim import in_order, other_files
from codespec.types import FileMarkers, FimOrder, FimTokens


class Files(NamedTuple):
    """Markers before the name of a repository and the path of a file, "" for none. `heading` and
    `is_inside` are those of `FileMarkers`."""

    repository: str = ""
    file: str = ""
    heading: str = ""
    is_inside: bool = False


class Spelling(NamedTuple):
    """Markers as a client writes them: before the prefix, the suffix and the middle, "" where the
    prefix comes last and nothing follows it; before a repository and each of its files."""

    prefix: str
    suffix: str
    middle: str
    repository: str = ""
    file: str = ""


class Family(NamedTuple):
    """Models that are asked in one way.

    prefix, suffix, middle: markers before these, as the vocabulary spells them; "" for a middle
               that nothing marks, as there is nothing behind the prefix.
    named:     matches the names of its models, where others share their vocabulary.
    files:     how other files are told; None: as comments.
    ends:      further markers before which what the model writes is over.
    spellings: markers as clients write them, beside those of the vocabulary.
    """

    prefix: str
    suffix: str
    middle: str
    order: FimOrder = "psm"
    named: re.Pattern[str] | None = None
    files: Files | None = None
    ends: tuple[str, ...] = ()
    spellings: tuple[Spelling, ...] = ()

    @property
    def markers(self) -> tuple[str, str, str]:
        return self.prefix, self.suffix, self.middle

    @property
    def texts(self) -> tuple[str, ...]:
        """All of its markers, those of other files included."""
        files = self.files or Files()
        return tuple(filter(None, (*self.markers, files.repository, files.file)))

    @property
    def spelled(self) -> tuple[Spelling, ...]:
        """All its spellings: none is the beginning of a later one."""
        files = self.files or Files()
        return (*self.spellings, Spelling(*self.markers, files.repository, files.file))

    def tokens(self, ids: Mapping[str, int]) -> FimTokens:
        """Its markers in a vocabulary that has them. `ids`: by text."""
        prefix, suffix, middle = (ids.get(text, -1) for text in self.markers)
        return FimTokens(prefix, suffix, middle, self.order, self._files_in(ids))

    def _files_in(self, ids: Mapping[str, int]) -> FileMarkers | None:
        """None where the vocabulary lacks a marker of files."""
        files = self.files
        if files is None or any(t and t not in ids for t in (files.repository, files.file)):
            return None
        repository, file = (ids[text] if text else -1 for text in (files.repository, files.file))
        return FileMarkers(repository, file, files.heading, files.is_inside)

    def prompt(
        self,
        prefix: str,
        suffix: str,
        others: Sequence[tuple[str, str]] = (),
        path: str = "",
        repository: str = "",
    ) -> str:
        """The prompt as text, for a model that takes no ids and reads markers in its text.

        others:     (path, text) of files to show before the document, if the family knows files.
        path:       of the document, from the repository's root as those of `others`.
        repository: its name.
        """
        before = ""
        if others and self.files is not None:
            kinds = self.files.repository or None, self.files.file or None
            shape = self.files.heading, self.files.is_inside
            parts, inside = other_files(others, path, repository, *kinds, *shape)
            before, prefix = "".join(parts), inside + prefix
        at = prefix.rfind("\n") + 1
        return before + "".join(
            in_order(self.order, self.markers, prefix[:at], prefix[at:], suffix)
        )


_STARCODER = Files("<repo_name>", "<file_sep>", is_inside=True)

FAMILIES: tuple[Family, ...] = (
    Family(  # Mellum
        "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "suffix-first",
        re.compile(r"mellum", re.IGNORECASE), Files(file="<filename>"),
    ),
    Family(  # Codestral
        "[PREFIX]", "[SUFFIX]", "", "suffix-first",
        re.compile(r"(?<!mamba.)codestral", re.IGNORECASE),
        Files(heading="+++++ ", is_inside=True),
    ),
    Family(  # StarCoder, Granite
        "<fim_prefix>", "<fim_suffix>", "<fim_middle>", files=_STARCODER, ends=("<reponame>",)
    ),
    Family(  # Qwen, CodeGemma
        "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>",
        files=Files("<|repo_name|>", "<|file_sep|>"), ends=("<|file_separator|>",),
    ),
    Family("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek Coder
    Family(  # Code Llama
        "▁<PRE>", "▁<SUF>", "▁<MID>",
        spellings=(Spelling("<PRE> ", " <SUF>", " <MID>"), Spelling("<PRE>", " <SUF>", " <MID>")),
    ),
    Family(
        "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>",
        spellings=(
            Spelling(
                "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|><|assistant|>\n", "<|user|>"
            ),
        ),
    ),
    Family("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "suffix-first"),  # Seed-Coder
)  # fmt: skip
"""The first that fits is a model's own."""


def family_in(texts: Mapping[str, int], names: str) -> Family | None:
    """The family of a model with these texts in its vocabulary. `names`: what it is called."""
    for family in FAMILIES:
        is_meant = family.named is None or family.named.search(names)
        if is_meant and all(text in texts for text in family.markers if text):
            return family
    return None


def ends_in(ids: Mapping[str, int]) -> frozenset[int]:
    """Ids of markers that another file begins with, in any family: what is written before them is
    over."""
    texts = {text for family in FAMILIES for text in family.ends}
    texts |= {text for family in FAMILIES if family.files for text in family.files[:2]}
    return frozenset(ids[text] for text in texts if text in ids)
