"""Models that other programs keep here: found, and used where they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from codespec.config import load_settings
from codespec.models import elsewhere
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from tests.models_cli import config, ok, run

__all__ = ["config"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return path


def put(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def pull(models: Path, name: str, content: bytes, *others: str) -> Path:
    """Write a model's files as Ollama does when it pulls one. name: hub/owner/model/tag. others:
    kinds of further layers."""
    digest = hashlib.sha256(content).hexdigest()
    kinds = [*others, "model"]
    layers = [
        {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"}
        for kind in kinds
    ]
    manifest = {"schemaVersion": 2, "config": {"digest": "sha256:0"}, "layers": layers}
    put(models / "manifests" / name, json.dumps(manifest).encode())
    return put(models / "blobs" / f"sha256-{digest}", content)


def names() -> list[tuple[str, str]]:
    return [(f.name, f.keeper) for f in elsewhere.find_all()]


def test_a_model_of_ollama_is_used_where_it_is(home: Path, config: Path) -> None:
    assert "other programs" not in ok("recommend")
    library = "registry.ollama.ai/library"
    content = bundled(BUNDLED_TARGET).read_bytes()
    blob = pull(home / ".ollama/models", f"{library}/small-coder/1b", content, "license")
    assert "codespec models add small-coder:1b   (Ollama, 0.0 GB)" in ok("recommend")
    (kept,) = json.loads(ok("recommend", "--json"))["elsewhere"]
    assert kept == {
        "name": "small-coder:1b",
        "path": str(blob),
        "keeper": "Ollama",
        "bytes": len(content),
    }
    assert str(blob) in ok("add", "small-coder:1b")
    assert "small-coder:1b" in ok("list")
    assert "other programs" not in ok("recommend"), "it is on the list by now"
    ok("default", "small-coder:1b")
    assert load_settings().model.target == str(blob)
    ok("default", "bundled")
    ok("remove", "small-coder:1b")
    assert blob.is_file()


def test_models_of_other_owners_and_hubs_say_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "elsewhere"))
    pull(home / "elsewhere", "registry.ollama.ai/maker/coder/latest", b"one")
    pull(home / "elsewhere", "hf.co/maker/coder/Q8_0", b"two")
    assert names() == [("hf.co/maker/coder:Q8_0", "Ollama"), ("maker/coder:latest", "Ollama")]


def test_files_of_other_programs_are_found_once(home: Path) -> None:
    put(home / ".lmstudio/models/maker/repo/Coder-Q8.gguf")
    put(home / ".lmstudio/models/maker/repo/mmproj-Coder.gguf")
    put(home / ".cache/llama.cpp/maker_Other.gguf")
    for i in (1, 2):
        put(home / f".cache/llama.cpp/big-0000{i}-of-00002.gguf")
    hub = home / ".cache/huggingface/hub/models--maker--repo"
    blob = put(hub / "blobs/1234")
    for revision in ("one", "two"):
        snapshot = hub / "snapshots" / revision / "Hugging.gguf"
        snapshot.parent.mkdir(parents=True)
        snapshot.symlink_to(blob)
    assert names() == [
        ("big-00001-of-00002", "llama.cpp"),
        ("coder-q8", "LM Studio"),
        ("hugging", "Hugging Face"),
        ("maker_other", "llama.cpp"),
    ]


def test_what_cannot_be_read_is_not_there(home: Path) -> None:
    library = home / ".ollama/models/manifests/registry.ollama.ai/library"
    put(library / "broken/latest", b"{")
    put(library / "odd/latest", b'{"layers": [{"mediaType": 1}]}')
    lost = pull(home / ".ollama/models", "registry.ollama.ai/library/lost/latest", b"x")
    lost.unlink()
    (home / ".cache/llama.cpp").mkdir(parents=True)
    (home / ".cache/llama.cpp/gone.gguf").symlink_to(home / "nowhere")
    assert names() == []
    assert "no model of that name is known" in run("add", "lost:latest").output


def test_a_file_here_comes_before_one_of_the_same_name_elsewhere(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(home / ".ollama/models", "registry.ollama.ai/library/coder/1b", b"no model")
    here = put(home / "coder:1b", bundled(BUNDLED_DRAFT).read_bytes())
    monkeypatch.chdir(home)
    assert str(here) in ok("add", "coder:1b")
