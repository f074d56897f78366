"""Models of each family are asked as they were trained to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.config import load_settings
from codespec.context.families import FAMILIES, Family, family_in
from codespec.context.prompt_window import Window, build_context
from codespec.context.snippets import render
from codespec.context.templates import parted
from codespec.requests import CompletionRequest
from codespec.types import Snippet
from tests.engines import strict_engine
from tests.families import model_file

STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>")
STARCODER2 = (*STARCODER, "<repo_name>")
MELLUM = (*STARCODER, "<filename>")
QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
MISTRAL = ("[PREFIX]", "[SUFFIX]", "[MIDDLE]")
SEED = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>")


def prompt_of(path: Path, other: str = "") -> str:
    """The prompt for "a\\nb(" before the cursor and ")" after it, in a file "a.py"; other: the text
    of another, "x.py"."""
    model = load_model(path, vocab_only=True)
    texts, tokenizer = model.token_texts(), LlamaTokenizer(model)
    snippets = (Snippet("buffers", "/w/x.py", other),) if other else ()
    info = replace(model.info, n_ctx=512)
    shown = render(snippets, info, tokenizer, "/w/a.py", "/w")
    left, right = tokenizer.encode("a\nb("), tokenizer.encode(")")
    request = CompletionRequest("a\nb(", ")")
    window = Window(64, 64)
    context = build_context(request, left, right, info, tokenizer, window, snippets, shown)
    model.close()
    return "".join(texts[t] for t in context.prompt.tolist())


@pytest.mark.parametrize(
    ("name", "markers", "prompt"),
    [
        ("StarCoder2 3B", STARCODER, "<fim_prefix>aĊ<fim_suffix>)<fim_middle>b("),
        ("Mellum 4b Base", STARCODER, "<fim_suffix>)<fim_prefix>aĊ<fim_middle>b("),
        ("Seed-Coder-8B-Base", SEED, "<[fim-suffix]>)<[fim-prefix]>aĊ<[fim-middle]>b("),
        ("Codestral-22B-v0.1", MISTRAL, "[SUFFIX])[PREFIX]aĊb("),
        # The same vocabulary, but nobody taught them what its markers are for.
        ("Mistral-7B-v0.3", MISTRAL, "aĊb("),
        ("mamba-codestral-7B-v0.1", MISTRAL, "aĊb("),
        ("Llama 3", (), "aĊb("),
    ],
)
def test_each_family_has_its_own_order(
    tmp_path: Path, name: str, markers: tuple[str, ...], prompt: str
) -> None:
    assert prompt_of(model_file(tmp_path, name, markers)) == prompt


@pytest.mark.parametrize(
    ("name", "markers", "prompt"),
    [
        (
            "Qwen2.5-Coder",
            QWEN,
            "<|repo_name|>wĊ<|file_sep|>x.pyĊx=1Ċ<|file_sep|>a.pyĊ",
        ),
        ("StarCoder2 3B", STARCODER2, "<repo_name>w<file_sep>x.pyĊx=1Ċ<file_sep><fim_prefix>a.pyĊ"),
        ("Mellum 4b Base", MELLUM, "<filename>x.pyĊx=1Ċ<filename>a.pyĊ<fim_suffix>"),
        ("Codestral-22B-v0.1", MISTRAL, "[SUFFIX])[PREFIX]+++++Ġx.pyĊx=1ĊĊ+++++Ġa.pyĊ"),
        # Granite's vocabulary has no marker of StarCoder 2's.
        ("Granite 3B", STARCODER[:3], "<fim_prefix>#ĠPath:Ġx.pyĊ#Ġx=1Ċ"),
    ],
)
def test_each_family_is_shown_other_files_in_its_own_way(
    tmp_path: Path, name: str, markers: tuple[str, ...], prompt: str
) -> None:
    assert prompt_of(model_file(tmp_path, name, markers), "x=1").startswith(prompt)


@pytest.mark.parametrize(
    ("name", "markers"),
    [
        ("StarCoder2 3B", STARCODER2),
        ("Mellum 4b Base", MELLUM),
        ("Seed-Coder-8B-Base", SEED),
        ("Codestral-22B-v0.1", MISTRAL),
        ("Qwen2.5-Coder", QWEN),
    ],
)
def test_a_prompt_of_text_is_the_one_of_ids(
    tmp_path: Path, name: str, markers: tuple[str, ...]
) -> None:
    family = family_in(dict.fromkeys(markers, 0), name)
    assert family is not None
    read = prompt_of(model_file(tmp_path, name, markers), "x=1" if family.files else "")
    written = family.prompt("a\nb(", ")", [("x.py", "x=1")], "a.py", "w")
    assert written.replace("\n", "Ċ").replace(" ", "Ġ") == read


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix + family.order)
def test_what_is_written_for_a_family_is_read(family: Family) -> None:
    for prefix in ("", "x = ", "x = 1\ny = f("):
        assert parted(family.prompt(prefix, "\nz = 3\n")) == (prefix, "\nz = 3\n", ())
    if family.files is not None:
        prompt = family.prompt("x = ", ")", [("b/c.py", "y = 1")], "a.py", "shop")
        found = parted(prompt)
        # A document's name within its prefix reads as its first line.
        assert found.prefix.removeprefix("a.py\n") == "x = "
        assert [(name, text.strip()) for name, text in found.files] == [("b/c.py", "y = 1")]


def test_a_file_may_tell_its_family_where_its_content_does_not(tmp_path: Path) -> None:
    path = model_file(tmp_path, "", MISTRAL)
    assert prompt_of(path) == "aĊb("
    assert prompt_of(path.rename(tmp_path / "codestral-22b-q4.gguf")).startswith("[SUFFIX]")


@pytest.mark.parametrize(("name", "markers"), [("StarCoder2", STARCODER), ("Codestral", MISTRAL)])
def test_what_is_written_ends_before_any_marker(
    tmp_path: Path, name: str, markers: tuple[str, ...]
) -> None:
    model = load_model(model_file(tmp_path, name, markers), vocab_only=True)
    ends = {model.token_text(t) for t in model.info.eog}
    assert ends == {"<|endoftext|>", *markers} - {"[MIDDLE]"}
    model.close()


def test_completing_with_a_model_without_a_marker_of_the_middle(tmp_path: Path) -> None:
    path = model_file(tmp_path, "Codestral", MISTRAL)
    settings = load_settings({"model": {"target": str(path)}})
    engine = strict_engine(settings)
    made = engine.generate(CompletionRequest("x = 1\ny = (", ")\nz = 3\n", max_tokens=8))
    texts = made.context.prompt.tolist()
    assert made.context.fim
    assert engine.tokenizer.decode(texts) == b")\nz = 3\nx = 1\ny = ("
    assert made.trace.n_tokens == len(made.tokens)
    engine.close()
