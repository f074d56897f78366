"""Fill-in-the-middle formats of model families: one record each, to write prompts for models and to
read prompts that clients wrote.

A model's family is found by its vocabulary (`family_in`), which gives its prompts in ids; a model
that takes text gets `Family.prompt`. Clients' spellings are not all those of vocabularies: Code
Llama's "▁<PRE>" is written "<PRE> " (`templates`).

Sources: the model cards of Code Llama, DeepSeek Coder, CodeGemma, Codestral, Seed-Coder, Mellum,
Qwen2.5-Coder, SantaCoder, StarCoder 2; Lozhkov et al. 2024, "StarCoder 2 and The Stack v2",
section 5.1; Continue, core/autocomplete/templating/AutocompleteTemplate.ts; ProxyAI,
codecompletions/InfillPromptTemplate.kt; Zed, crates/edit_prediction/src/fim.rs.
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
    """Markers as a client writes them: before the prefix, "" where it comes first; the suffix; the
    middle, "" where the prefix comes last and nothing follows it; before a repository and each of
    its files."""

    prefix: str
    suffix: str
    middle: str
    repository: str = ""
    file: str = ""


class Family(NamedTuple):
    """A family of models with one prompt format.

    prefix, suffix, middle: markers before these, as the vocabulary spells them; "" for a middle
        without a marker, as nothing stands behind the prefix.
    named:     matches the names of its models, where others share their vocabulary.
    files:     markers of other files; None: other files are comments.
    ends:      further markers that end the output.
    spellings: markers as clients write them, beside those of the vocabulary.
    makes:     parts of the names of its models, in small letters: for unknown vocabularies.
    """

    prefix: str
    suffix: str
    middle: str
    order: FimOrder = "psm"
    named: re.Pattern[str] | None = None
    files: Files | None = None
    ends: tuple[str, ...] = ()
    spellings: tuple[Spelling, ...] = ()
    makes: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, str, str]:
        return self.prefix, self.suffix, self.middle

    @property
    def texts(self) -> tuple[str, ...]:
        """All markers of the family, those of other files included."""
        files = self.files or Files()
        return tuple(filter(None, (*self.markers, files.repository, files.file)))

    @property
    def spelled(self) -> tuple[Spelling, ...]:
        """All spellings of the markers, that of the vocabulary last. Where several fit a prompt,
        the one with the longest markers is meant."""
        files = self.files or Files()
        return (*self.spellings, Spelling(*self.markers, files.repository, files.file))

    def tokens(self, ids: Mapping[str, int]) -> FimTokens:
        """The ids of the markers in a vocabulary that has them. ids: by text."""
        prefix, suffix, middle = (ids.get(text, -1) for text in self.markers)
        return FimTokens(prefix, suffix, middle, self.order, self._files_in(ids))

    def _files_in(self, ids: Mapping[str, int]) -> FileMarkers | None:
        """The ids of the markers of files; None where the vocabulary lacks one."""
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
        re.compile(r"mellum", re.IGNORECASE), Files(file="<filename>"), makes=("mellum",),
    ),
    Family(  # Codestral
        "[PREFIX]", "[SUFFIX]", "", "suffix-first",
        re.compile(r"(?<!mamba.)codestral", re.IGNORECASE),
        Files(heading="+++++ ", is_inside=True),
        spellings=(Spelling("[PREFIX]", "[SUFFIX]", "[MIDDLE]"),), makes=("codestral",),
    ),
    Family(  # StarCoder, Granite; CodeQwen 1.5
        "<fim_prefix>", "<fim_suffix>", "<fim_middle>", files=_STARCODER, ends=("<reponame>",),
        makes=("starcoder", "granite", "codeqwen"),
        spellings=(
            Spelling("<fim_prefix>", " <fim_suffix> ", "<fim_middle>", "<reponame>", "<filename>"),
            Spelling("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<file_sep>"),
        ),
    ),
    Family(  # SantaCoder; prompts for InCoder, CodeGen 2 and aiXcoder are read, and never written
        "<fim-prefix>", "<fim-suffix>", "<fim-middle>", makes=("santacoder",),
        spellings=(
            Spelling("", "<|mask:0|>", "<|mask:1|><|mask:0|>"),
            Spelling("", "<mask_1>", "<|endoftext|><sep><mask_1>"),
            Spelling("▁<AIX-SPAN-PRE>", "▁<AIX-SPAN-POST>", "▁<AIX-SPAN-MIDDLE>"),
        ),
    ),
    Family(  # Qwen, CodeGemma
        "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>",
        files=Files("<|repo_name|>", "<|file_sep|>"), ends=("<|file_separator|>",),
        makes=("qwen", "codegemma", "codespec"),
        spellings=(
            Spelling(
                "<|fim_prefix|> ", " <|fim_suffix|>", " <|fim_middle|>",
                "<|repo_name|>", "<|file_sep|>",
            ),
            Spelling(
                "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", file="<|file_separator|>"
            ),
            Spelling("", "<|fim_suffix|>", "<|fim_middle|>"),
        ),
    ),
    Family(  # DeepSeek Coder
        "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", makes=("deepseek",),
        spellings=(
            Spelling("<|fim▁begin|>", "<|fim▁hole|>", "<|fim▁end|>"),
            Spelling("<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>"),
        ),
    ),
    Family(  # Code Llama
        "▁<PRE>", "▁<SUF>", "▁<MID>", makes=("codellama", "code-llama"),
        spellings=(
            Spelling("<PRE> ", " <SUF>", " <MID>"),
            Spelling("<PRE> ", " <SUF>", " <MID> "),
            Spelling("<PRE> ", "<SUF>", " <MID> "),  # before the prefix, which comes last
            Spelling("<PRE>", " <SUF>", " <MID>"),
            Spelling("<PRE>", "<SUF>", "<MID>"),
        ),
    ),
    Family(
        "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>",
        spellings=(
            Spelling(
                "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|><|assistant|>\n", "<|user|>"
            ),
        ),
    ),
    Family(  # Seed-Coder
        "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "suffix-first", makes=("seed-coder",),
    ),
)  # fmt: skip
"""Known families; the first that fits a model is its own."""

BEGINNINGS = (
    "<s>", "</s>", "<bos>", "<|endoftext|>", "<|begin_of_text|>",
    "<｜begin▁of▁sentence｜>", "<[begin▁of▁sentence]>",
)  # fmt: skip
"""Tokens that begin a text, as clients spell them: of Code Llama and Codestral, of Code Llama as
Refact writes it, CodeGemma, Qwen and StarCoder, Llama 3, DeepSeek Coder, Seed-Coder."""


def family_in(texts: Mapping[str, int], names: str) -> Family | None:
    """The family of a model with these texts in its vocabulary; None for an unknown one. names:
    names of the model."""
    for family in FAMILIES:
        is_meant = family.named is None or family.named.search(names)
        if is_meant and all(text in texts for text in family.markers if text):
            return family
    return None


def family_of(name: str) -> Family | None:
    """The family of a model by its name alone, such as "Qwen/Qwen2.5-Coder-7B"; None for an unknown
    one. Of several makes in a name, the longest counts: CodeQwen 1.5 is no Qwen."""
    name = name.lower()
    known = [(make, family) for family in FAMILIES for make in family.makes if make in name]
    return max(known, key=lambda found: len(found[0]))[1] if known else None


def ends_in(ids: Mapping[str, int]) -> frozenset[int]:
    """Ids of markers that begin another file, in any family: they end the output."""
    texts = {text for family in FAMILIES for text in family.ends}
    texts |= {text for family in FAMILIES if family.files for text in family.files[:2]}
    return frozenset(ids[text] for text in texts if text in ids)
