"""FIM prompts as editors send them."""

from __future__ import annotations

import pytest

from codespec.context.templates import PromptParts, has_markers, parted

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
        # ProxyAI
        "<|fim_prefix|> {prefix} <|fim_suffix|>{suffix} <|fim_middle|>",
        "<fim_prefix>{prefix} <fim_suffix> {suffix}<fim_middle>",
        "[SUFFIX]{suffix}[PREFIX]{prefix}[MIDDLE]",
        # Continue, Mercury
        "{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        # Mellum's own
        "<filename>main.py\n<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
        # SantaCoder
        "<fim-prefix>{prefix}<fim-suffix>{suffix}<fim-middle>",
        # the token that begins a text
        "<s>[SUFFIX]{suffix}[PREFIX]{prefix}",
        "<｜begin▁of▁sentence｜><｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        "<|endoftext|><|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "<s> <PRE> {prefix} <SUF>{suffix} <MID>",
        "<[begin▁of▁sentence]><[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
        # Refact, Code Llama
        "</s><PRE>{prefix}<SUF>{suffix}<MID>",
        # InCoder, CodeGen 2, aiXcoder
        "{prefix}<|mask:0|>{suffix}<|mask:1|><|mask:0|>",
        "{prefix}<mask_1>{suffix}<|endoftext|><sep><mask_1>",
        "<s>▁<AIX-SPAN-PRE>▁<AIX-SPAN-POST>{suffix}▁<AIX-SPAN-MIDDLE>{prefix}",
        # Code Llama, the suffix first; its marker is followed by a blank
        "<PRE> <SUF>{suffix} <MID> {prefix}",
        # as people type them
        "<PRE> {prefix} <SUF>{suffix} <MID> ",
        "<PRE>{prefix}<SUF>{suffix}<MID>",
        "<|fim▁begin|>{prefix}<|fim▁hole|>{suffix}<|fim▁end|>",
        "<|fim_begin|>{prefix}<|fim_hole|>{suffix}<|fim_end|>",
        # as vocabularies spell it
        "▁<PRE>{prefix}▁<SUF>{suffix}▁<MID>",
    ],
)
def test_the_parts_of_a_prompt_are_told_apart(template: str) -> None:
    for prefix, suffix in ((PREFIX, SUFFIX), ("", SUFFIX), (PREFIX, ""), ("", "")):
        assert parted(template.format(prefix=prefix, suffix=suffix)) == PromptParts(prefix, suffix)


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
        # twinny, Qwen: no markers but those of files
        (f"<|repo_name|>shop\n<|file_sep|>a.py\n{ONE}<|file_sep|>b.py\n{PREFIX}", (("a.py", ONE),)),
        # ProxyAI, CodeGemma and CodeQwen 1.5
        (
            f"<|file_separator|>a.py \n{ONE}<|file_separator|>b.py \n"
            f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            (("a.py", ONE),),
        ),
        (
            f"<reponame>shop\n<file_sep>a.py \n{ONE}<file_sep>b.py \n"
            f"<fim_prefix>{PREFIX}<fim_suffix>{SUFFIX}<fim_middle>",
            (("a.py", ONE),),
        ),
        # ProxyAI, Qwen 2.5 and StarCoder
        (
            f"<|repo_name|>shop\n<|file_sep|>a.py \n{ONE}<|file_sep|>b.py \n"
            f"<|fim_prefix|> {PREFIX} <|fim_suffix|>{SUFFIX} <|fim_middle|>",
            (("a.py", ONE),),
        ),
        (
            f"<reponame>shop<filename>a.py\n{ONE}<filename>b.py \n"
            f"<fim_prefix>{PREFIX} <fim_suffix> {SUFFIX}<fim_middle>",
            (("a.py", ONE),),
        ),
        # ProxyAI, Codestral and DeepSeek: comments before the markers
        (
            f"# a.py \n{ONE}\n# b.py \n[SUFFIX]{SUFFIX}[PREFIX]{PREFIX}[MIDDLE]",
            (("", f"# a.py \n{ONE}\n# b.py \n"),),
        ),
        (
            f"#a.py\n{ONE}\n#b.py\n<｜fim▁begin｜>{PREFIX}<｜fim▁hole｜>{SUFFIX}<｜fim▁end｜>",
            (("", f"#a.py\n{ONE}\n#b.py\n"),),
        ),
        # ProxyAI, Code Llama: comments before the markers
        (f"# a.py \n{ONE}\n<PRE> {PREFIX} <SUF>{SUFFIX} <MID>", (("", f"# a.py \n{ONE}\n"),)),
        # llama.vscode, OpenAI's endpoint: text that ends in no line end
        (
            f"Context:\n\nx<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            (("", "Context:\n\nx"),),
        ),
        # twinny, Codestral
        (
            f"# Below:\n{ONE}\n\n[SUFFIX]{SUFFIX}[PREFIX]{PREFIX}",
            (("", f"# Below:\n{ONE}\n\n"),),
        ),
        (f"\n\n[SUFFIX]{SUFFIX}[PREFIX]{PREFIX}", ()),
        # Cody, Qwen: files with names, of no repository
        (
            f"<|file_sep|>src/a.py\n{ONE}\n<|file_sep|>b.py\n"
            f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            (("src/a.py", ONE + "\n"),),
        ),
        # ProxyAI, StarCoder: a token ends each file
        (
            f"<reponame>shop<filename>a.py\n{ONE}<|endoftext|>\n<filename>b.py \n"
            f"<fim_prefix>{PREFIX} <fim_suffix> {SUFFIX}<fim_middle>",
            (("a.py", ONE),),
        ),
        # DeepSeek: the token that begins a text, before other text
        (
            f"<｜begin▁of▁sentence｜>#a.py\n{ONE}"
            f"<｜fim▁begin｜>{PREFIX}<｜fim▁hole｜>{SUFFIX}<｜fim▁end｜>",
            (("", f"#a.py\n{ONE}"),),
        ),
        # Continue, Codestral: a diff among the files has no heading
        (
            f"[SUFFIX]{SUFFIX}[PREFIX]diff --git a/x b/x\n-a\n+b\n\n+++++ a.py \n{ONE}\n\n"
            f"+++++ d.py\n{PREFIX}",
            (("", "diff --git a/x b/x\n-a\n+b\n\n"), ("a.py", ONE + "\n\n")),
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
    suffix = SUFFIX if SUFFIX in prompt else ""
    assert parted(prompt) == PromptParts(PREFIX, suffix, files)


def test_a_middle_that_has_begun_stands_before_the_cursor() -> None:
    prompt = "<fim_prefix>x = <fim_suffix>\ny = 2\n<fim_middle>f("
    assert parted(prompt) == PromptParts("x = f(", "\ny = 2\n")


@pytest.mark.parametrize(
    ("prompt", "prefix", "suffix"),
    [
        # quotes
        ("<P>M = '<S>'\nx = <S>)\n<M>", "M = '<S>'\nx = ", ")\n"),
        ("<P>x = <S>)\nM = '<S>'\n<M>", "x = ", ")\nM = '<S>'\n"),
        ('<P>x = <S>)\nT = "<P>{p}<S>{s}<M>"\n<M>', "x = ", ')\nT = "<P>{p}<S>{s}<M>"\n'),
        ("<P>a\n<S>)<M>M = '<M>", "a\nM = '<M>", ")"),
        ("<P>a\n<S>)\n<M>M = '<M>", "a\nM = '<M>", ")\n"),
        ("<S>)\nM = '<P>'\n<P>x = '<P>' + <M>", "x = '<P>' + ", ")\nM = '<P>'\n"),
        # the beginning of a line
        ("<P># <S> stands\n<S># before <S> the\n<M>", "# <S> stands\n", "# before <S> the\n"),
        ("<P> # the <S> stands\n<S># a <S> the <M>", " # the <S> stands\n", "# a <S> the "),
        # the last one
        ("<P># <S> stands\nx = <S>)\n<M>", "# <S> stands\nx = ", ")\n"),
        ("<P>a<S>b <M> c\n<M>", "a", "b <M> c\n"),
        # pairs of them
        ("<P>x = <S>\np: <P>\ns: <S>\nm: <M>\n<M>", "x = ", "\np: <P>\ns: <S>\nm: <M>\n"),
        (
            "<P>p: <P>\ns: <S>\nx = <S>\np: <P>\ns: <S>\n<M>",
            "p: <P>\ns: <S>\nx = ",
            "\np: <P>\ns: <S>\n",
        ),
        ("<S>p: <P>\ns: <S>\n<P>x = <M>", "x = ", "p: <P>\ns: <S>\n"),
        ("<P>\n<P>\n<S>\n<M>\nx = <S>)\n<M>", "\n<P>\n<S>\n<M>\nx = ", ")\n"),
        ("<P>x = <S>\n- <P>\n- <S>\n<M>", "x = ", "\n- <P>\n- <S>\n"),
        # examples before the prompt
        ("<P>a<S>b<M>c<P>d<S>e<M>", "a<S>b<M>c<P>d", "e"),
        ("<P>a<S>b<M>c\n<P>d<S>e<M>", "a<S>b<M>c\n<P>d", "e"),
        # a prompt in another spelling
        ("<P># <PRE> x <SUF>y <MID>\n<S>)\n<M>", "# <PRE> x <SUF>y <MID>\n", ")\n"),
    ],
)
def test_a_document_may_name_markers(prompt: str, prefix: str, suffix: str) -> None:
    for family in ("<fim_{}>", "<|fim_{}|>", "<[fim-{}]>"):

        def written(text: str, family: str = family) -> str:
            for short, name in (("<P>", "prefix"), ("<S>", "suffix"), ("<M>", "middle")):
                text = text.replace(short, family.format(name))
            return text

        assert parted(written(prompt)) == PromptParts(written(prefix), written(suffix))


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("a: <fim_prefix>\nb: <fim_suffix>\nx: ", "\n"),
        ("x: ", "\na: <fim_prefix>\nb: <fim_suffix>\n"),
        ("x = ", "\nM = ['<fim_prefix>', '<fim_suffix>', '<fim_middle>']\n"),
        ("say('hello ", "')\n"),
    ],
)
def test_a_document_behind_others_may_name_markers(prefix: str, suffix: str) -> None:
    own = f"<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>"
    for head in (f"<file_sep>{ONE}<file_sep>", "<filename>a.py", f"# a.py\n{ONE}\n"):
        found = parted(head + own)
        assert (found.prefix, found.suffix) == (prefix, suffix), head
    for family in ("<|fim_{}|>", "<[fim-{}]>"):
        named = [family.format(name) for name in ("prefix", "suffix", "middle")]
        text = f"\nM = {named}\n"
        prompt = f"x = <|fim_suffix|>{text}<|fim_middle|>"  # Continue, Mercury
        assert parted(prompt) == PromptParts("x = ", text)


def test_the_cursor_may_stand_in_quotes() -> None:
    for prefix, suffix in (("say('hello ", "')\n"), ("M = '<|fim_suffix|>'\nsay('", "')\n")):
        prompt = f"{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"
        assert parted(prompt) == PromptParts(prefix, suffix)
    prompt = "# it's one<|fim_prefix|>say('hello <|fim_suffix|>')\n<|fim_middle|>"
    assert parted(prompt) == PromptParts("say('hello ", "')\n", (("", "# it's one"),))


@pytest.mark.parametrize(
    "document",
    [
        "",
        "one",
        'M = "<fim_prefix>", "<fim_suffix>", "<fim_middle>"\nx = ',
        'M = "<fim_prefix>", "<fim_suffix>", "<fim_middle>',
        "if '[PREFIX]' in text and '[SUFFIX]' in text:\n    ",
        "T = '<|fim_prefix|>{p}<|fim_suffix|>{s}<|fim_middle|>'\n",
        "Write `<PRE>` and `<SUF>` and `<MID>`; ",
        "<html>\n<PRE>\none",
        "<s>one</s>",
    ],
)
def test_a_document_that_names_markers_is_all_prefix(document: str) -> None:
    assert parted(document) == PromptParts(document)
    assert not has_markers(document)


@pytest.mark.parametrize(
    "prompt",
    [
        "<fim_prefix>one<fim_middle>",
        "<fim_prefix>one<fim_suffix>two",
        "<fim_middle>one<fim_prefix>two<fim_suffix>",
        "<fim_prefix>one<|fim_suffix|>two<fim_middle>",
        "[PREFIX]one[SUFFIX]two",
        "[SUFFIX]one",
        "x<fim_prefix>one<fim_suffix>two<fim_middle>three",
    ],
)
def test_markers_that_make_no_template_are_all_prefix_and_told(prompt: str) -> None:
    assert parted(prompt) == PromptParts(prompt)
    assert has_markers(prompt)


def test_files_without_a_repository_make_no_template() -> None:
    assert parted("<file_sep>one<file_sep>two") == PromptParts("<file_sep>one<file_sep>two")


def test_many_markers_that_a_document_names() -> None:
    many = "'<fim_prefix>' '<fim_suffix>' '<fim_middle>' " * 20_000
    for prefix, suffix in ((f"{many}\nx = ", "\n"), ("x = ", f"\n{many[:4500]}\n")):
        prompt = f"<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>"
        assert parted(prompt) == PromptParts(prefix, suffix)
    files = f"<|repo_name|>shop\n<|file_sep|>a.py\n{many}<|file_sep|>b.py\n"
    prompt = f"{files}<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>"
    assert parted(prompt) == PromptParts(PREFIX, SUFFIX, (("a.py", many),))
