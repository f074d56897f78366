"""Asking the index, while it changes underneath."""

from __future__ import annotations

import shutil

import numpy as np

from tests.index_support import Workspace


def test_nothing_there(workspace: Workspace) -> None:
    assert workspace.open() is None
    assert not workspace.store.folder.exists()


def test_longest_match_then_most_votes(workspace: Workspace) -> None:
    # Three segments, by three builds.
    for name, text in (
        ("a.zzz", "open(path) as short\n"),
        ("b.zzz", "with open(path) as long\n"),
        ("c.zzz", "(path) as many\n(path) as many\n"),
    ):
        workspace.write(name, text)
        workspace.build()
    assert workspace.draft("with open(path) as", 5) == " long"
    assert workspace.draft("xx(path) as", 5) == " many"
    assert workspace.draft("\0\1") == ""
    assert workspace.draft("") == ""


def test_the_open_files_stored_text_is_not_used(workspace: Workspace) -> None:
    workspace.write("a.zzz", "the word is stored\n")
    workspace.write("b.zzz", "word is other\n")
    workspace.build()
    index = workspace.index()
    context = workspace.tokenizer.encode("the word is")

    def draft(*skip: str) -> bytes:
        return workspace.tokenizer.decode(index.find(context, 6, skip).proposal.tokens)

    assert draft() == b" store"
    assert draft("a.zzz") == b" other"
    assert draft(str(workspace.root / "a.zzz")) == b" other"
    assert draft("b.zzz") == b" store"
    assert draft("c.zzz") == b" store"
    assert draft("/elsewhere/a.zzz") == b" store"
    assert draft("c.zzz", "a.zzz") == b" other"
    assert draft("b.zzz", "a.zzz") == b""


def test_locate(workspace: Workspace) -> None:
    workspace.write("x/a.zzz", "first words here\n")
    workspace.write("x/b.zzz", "second words there\n")
    workspace.build()
    index = workspace.index()
    found = index.find(workspace.tokenizer.encode("second "), 5)
    place = index.locate(found)
    assert place is not None
    assert (place.path, place.part, place.offset) == ("x/b.zzz", 0, len("second "))
    assert index.locate(index.find(workspace.tokenizer.encode("\0"), 5)) is None


def test_refresh(workspace: Workspace) -> None:
    workspace.write("a.zzz", "the word is old\n")
    workspace.build()
    index = workspace.index()
    context = workspace.tokenizer.encode("the word is")
    assert not index.refresh()
    workspace.write("a.zzz", "the word is new\n")
    workspace.build()
    assert (
        index.find(context, 4).proposal.tokens.tobytes()
        == workspace.tokenizer.encode(" old").tobytes()
    )
    assert index.refresh()
    assert not index.refresh()
    assert (
        index.find(context, 4).proposal.tokens.tobytes()
        == workspace.tokenizer.encode(" new").tobytes()
    )


def test_a_deleted_or_damaged_index_leaves_the_view(workspace: Workspace) -> None:
    workspace.write("a.zzz", "the word is old\n")
    workspace.build()
    index = workspace.index()
    context = workspace.tokenizer.encode("the word is")
    workspace.store.manifest_path.write_bytes(b"{")
    assert not index.refresh()
    shutil.rmtree(workspace.store.folder)
    assert not index.refresh()
    assert len(index.find(context, 4).proposal) == 4
    workspace.write("a.zzz", "the word is new\n")
    workspace.build()
    assert index.refresh()
    assert workspace.tokenizer.decode(index.find(context, 4).proposal.tokens) == b" new"


def test_sizes(workspace: Workspace) -> None:
    workspace.write("a.zzz", "one\n")
    workspace.write("b.zzz", "one\n")
    workspace.write("c.zzz", "three\n")
    workspace.write("d.bin", b"\0")
    workspace.build()
    index = workspace.index()
    assert (index.n_files, index.n_tokens) == (3, len("one\nthree\n"))
    assert index.n_bytes == sum(p.stat().st_size for p in workspace.store.folder.glob("*.seg"))
    assert index.paths == ("a.zzz", "b.zzz", "c.zzz")


def test_damage_inside_a_segment_never_crashes(workspace: Workspace) -> None:
    text = "".join(f"name_{i} = value_{i % 7}\n" for i in range(300))
    workspace.write("a.zzz", text)
    workspace.build()
    (path,) = workspace.store.folder.glob("*.seg")
    sound = path.read_bytes()
    rng = np.random.default_rng(0)
    n_opened = 0
    for _ in range(50):
        damaged = bytearray(sound)
        for at in rng.integers(0, len(sound), 2):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        index = workspace.open()
        if index is not None:
            n_opened += 1
            for context in ("name_1", " = value_", "\n"):
                found = index.find(workspace.tokenizer.encode(context), 16)
                index.locate(found)
    assert 0 < n_opened < 50
