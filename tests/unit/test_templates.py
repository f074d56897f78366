"""FIM prompts as editors send them."""

from __future__ import annotations

import pytest

from codespec.context.templates import Parts, parted

PREFIX, SUFFIX = "def area(width, height):\n    return ", "\n\n\nprint(area(2, 3))\n"


@pytest.mark.parametrize(
    "template",
    [
        # Zed
        "<PRE> {prefix} <SUF>{suffix} <MID>",
        "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "[SUFFIX]{suffix}[PREFIX]{prefix}",
        "<|code_prefix|>{prefix}<|code_suffix|>{suffix}<|code_middle|>",
        # Continue
        "<[fim-prefix]>{prefix}<[fim-suffix]>{suffix}<[fim-middle]>",
        "[SUFFIX]{suffix}[PREFIX]+++++ src/b.py\n{prefix}",
        "<|repo_name|>shop<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "<|user|>\n###PATH:b.py\n###LANGUAGE:python\n###MODE:BLOCK\n"
        "<|code_suffix|>{suffix}<|code_prefix|>{prefix}<|code_middle|><|assistant|>\n",
        # the suffix first
        "<|fim_suffix|>{suffix}<|fim_prefix|>{prefix}<|fim_middle|>",
        "<fim_prefix><fim_suffix>{suffix}<fim_middle>{prefix}",
        "<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
        "<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
        # collama.nvim
        "<PRE>{prefix} <SUF>{suffix} <MID>",
        # as vocabularies spell it
        "▁<PRE>{prefix}▁<SUF>{suffix}▁<MID>",
    ],
)
def test_the_parts_of_a_prompt_are_told_apart(template: str) -> None:
    for prefix, suffix in ((PREFIX, SUFFIX), ("", SUFFIX), (PREFIX, ""), ("", "")):
        assert parted(template.format(prefix=prefix, suffix=suffix)) == Parts(prefix, suffix)


ONE, TWO = "import os\n", "x = 1\n\n\ny = 2\n"


@pytest.mark.parametrize(
    ("prompt", "files"),
    [
        # Qwen's model card
        (
            f"<|repo_name|>shop\n<|file_sep|>a.py\n{ONE}<|file_sep|>b/c.py\n{TWO}<|file_sep|>d.py\n"
            f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            (("a.py", ONE), ("b/c.py", TWO)),
        ),
        # Continue: the last file is another one, too
        (
            f"<|repo_name|>shop\n<|file_sep|>a.py\n{ONE}\n<|file_sep|>b/c.py\n{TWO}"
            f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            (("a.py", ONE + "\n"), ("b/c.py", TWO)),
        ),
        # Continue, StarCoder 2: no names
        (
            f"<file_sep>{ONE}<file_sep>{TWO}<file_sep>"
            f"<fim_prefix>{PREFIX}<fim_suffix>{SUFFIX}<fim_middle>",
            (("", ONE), ("", TWO)),
        ),
        (
            f"<repo_name>shop<file_sep>a.py\n{ONE}<file_sep>"
            f"<fim_prefix>{PREFIX}<fim_suffix>{SUFFIX}<fim_middle>",
            (("a.py", ONE),),
        ),
        # Continue, Codestral
        (
            f"[SUFFIX]{SUFFIX}[PREFIX]+++++ a.py \n{ONE}\n\n+++++ b/c.py \n{TWO}\n\n+++++ d.py\n"
            + PREFIX,
            (("a.py", ONE + "\n\n"), ("b/c.py", TWO + "\n\n")),
        ),
    ],
)
def test_files_of_the_repository_are_told_apart(
    prompt: str, files: tuple[tuple[str, str], ...]
) -> None:
    assert parted(prompt) == Parts(PREFIX, SUFFIX, files)


def test_a_middle_that_has_begun_stands_before_the_cursor() -> None:
    prompt = "<fim_prefix>x = <fim_suffix>\ny = 2\n<fim_middle>f("
    assert parted(prompt) == Parts("x = f(", "\ny = 2\n")


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "one",
        "x<fim_prefix>one<fim_suffix>two<fim_middle>",
        "<fim_prefix>one<fim_middle>",
        "<fim_prefix>one<fim_suffix>two",
        "<fim_prefix><fim_suffix><fim_suffix><fim_middle>",
        "<fim_middle>one<fim_prefix>two<fim_suffix>",
        "<fim_prefix>one<|fim_suffix|>two<fim_middle>",
        "<file_sep>one<file_sep>two",
        "<|repo_name|>x\n<|file_sep|>a.py\none",
        "[PREFIX]one[SUFFIX]two",
        "[SUFFIX]one",
        "[SUFFIX]one[PREFIX]two[PREFIX]",
        "<PRE>one<SUF>two<MID>",
    ],
)
def test_any_other_prompt_is_all_prefix(prompt: str) -> None:
    assert parted(prompt) == Parts(prompt)
