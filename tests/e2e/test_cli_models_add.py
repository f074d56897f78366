"""`codespec models add`: downloads from a hub on loopback, and what is on the list."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import gguf
import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.config import load_settings
from codespec.models import catalogue, download, entries, library
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from tests.hub import Hub, hub
from tests.models_cli import config, model, ok, run

__all__ = ["config", "hub", "model"]


def test_downloaded_listed_used_and_removed(hub: Hub, config: Path) -> None:
    hub.content, hub.stated = bundled(BUNDLED_TARGET).read_bytes(), None
    url = download.hub_url("maker/repo", "small.gguf")
    assert "nobody stated its SHA-256" in ok("add", url)
    path = library.downloads_folder() / "small.gguf"
    assert path.read_bytes() == hub.content
    ok("default", "small")
    assert load_settings(env=dict(os.environ)).model.target == str(path)
    assert "small" in ok("list")
    assert "models default bundled" in ok("remove", "small")
    assert not path.exists()
    assert "SHA-256" in run("add", url, "--sha256", "0" * 64).output
    assert not path.exists()


def split(source: Path, folder: Path) -> list[Path]:
    """Writes a model as three files, as llama.cpp splits them: the first has no tensors."""
    read = gguf.GGUFReader(source)
    made: list[Path] = []
    half = len(read.tensors) // 2
    for i, tensors in enumerate(([], read.tensors[:half], read.tensors[half:])):
        made.append(folder / f"Big-{i + 1:05}-of-00003.gguf")
        writer = gguf.GGUFWriter(made[-1], "llama")
        for field in read.fields.values() if i == 0 else ():
            if not field.name.startswith("GGUF.") and field.name != "general.architecture":
                kind, sub = field.types[0], field.types[-1] if len(field.types) > 1 else None
                writer.add_key_value(field.name, field.contents(), kind, sub)
        writer.add_uint16("split.no", i)
        writer.add_uint16("split.count", 3)
        writer.add_int32("split.tensors.count", len(read.tensors))
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return made


def test_of_a_model_in_several_files_all_are_fetched(hub: Hub, tmp_path: Path) -> None:
    files = split(bundled(BUNDLED_TARGET), tmp_path)
    hub.files, hub.stated = {path.name: path.read_bytes() for path in files}, None
    url = download.hub_url("maker/repo", files[1].name)
    assert "one file of several" in run("add", f"{url}?a", "--sha256", "0" * 64).output
    hub.cut = 100_000
    assert "the same command goes on" in run("add", f"{url}?download=true").output
    hub.cut = None
    facts = json.loads(ok("add", f"{url}?download=true", "--json"))
    assert Path(facts["path"]).name == files[0].name
    there = sorted(library.downloads_folder().glob("Big*.gguf"))
    assert [path.name for path in there] == [path.name for path in files]
    assert facts["bytes"] == sum(path.stat().st_size for path in files)
    assert json.loads(ok("show", facts["name"], "--no-speed", "--json"))["bytes"] == facts["bytes"]
    rows = json.loads(ok("list", "--json"))["models"]
    assert rows[-1]["bytes"] == facts["bytes"]
    there[1].unlink()
    assert not json.loads(ok("list", "--json"))["models"][-1]["exists"]
    ok("remove", facts["name"])
    assert list(library.downloads_folder().glob("Big*")) == []
    hub.files[files[2].name] = hub.files[files[1].name]
    assert "cannot load" in run("add", url).output
    assert list(library.downloads_folder().glob("Big*")) == [], (
        "nothing is left of what is no model"
    )


def test_what_lies_there_and_is_on_no_list_is_said(hub: Hub, model: Path) -> None:
    hub.stated = None
    url = f"{hub.address}/data/half.gguf"
    hub.cut = 3_000_000
    assert "the same command goes on" in run("add", url).output
    (library.downloads_folder() / "old.gguf.part").touch()
    own = model.rename(library.downloads_folder() / "own.gguf")
    said = ok("list").replace("\n", "")
    assert f"{library.downloads_folder() / 'half.gguf.part'}, 3.0 MB" in said
    assert f"codespec models add {url}" in said
    assert f"codespec models add {own}" in said
    assert len(json.loads(ok("list", "--json"))["leftovers"]) == 3
    ok("add", own)
    assert str(own) not in ok("list")


def test_permissions_in_addresses_are_not_written_down(hub: Hub) -> None:
    url = f"{hub.address}/data/half.gguf"
    hub.content, hub.stated = bundled(BUNDLED_DRAFT).read_bytes(), None
    hub.cut = 1_000_000
    assert "the same command goes on" in run("add", f"{url}?token=s3cret").output
    said = ok("list").replace("\n", "")
    assert f"codespec models add {url} with the rest of that address" in said
    hub.cut = None
    ok("add", f"{url}?token=s3cret")
    assert hub.ranges[-1] == "bytes=1000000-"
    assert library.added()["half"].url == url
    ok("add", f"{url}?token=another")
    written = [path.read_bytes() for path in library.downloads_path().rglob("*.json")]
    assert written
    assert not any(b"token" in text for text in written)


def test_a_list_that_cannot_be_read_is_not_written_over(model: Path, config: Path) -> None:
    ok("add", model)
    path = library.downloads_folder() / "models.json"
    damaged = path.read_text()[:-3]
    path.write_text(damaged)
    for asked in (("list",), ("add", model), ("show", "mine"), ("remove", "mine")):
        result = run(*asked)
        assert (result.exit_code, str(path) in result.output) == (1, True), result.output
        assert "Mend it, or delete it" in result.output
    assert path.read_text() == damaged
    assert str(path) in CliRunner().invoke(main, ["doctor", "--quick"]).output
    path.unlink()
    assert "no such model" in run("show", "mine").output
    model.with_name("loop").symlink_to("loop")
    config.write_text(f'[model]\ntarget = "{model.with_name("loop")}"\n')
    assert "missing" in ok("list")


def test_what_a_model_says_of_itself_does_not_reach_the_terminal_as_it_is(model: Path) -> None:
    raw = model.read_bytes()
    assert raw.count(b"codespec-base") == 1
    model.write_bytes(raw.replace(b"codespec-base", b"evil\x1b]0;1\x07\x1b[m"))
    for command in (["models", "show", "--no-speed"], ["doctor", "--quick", "--model"]):
        said = CliRunner().invoke(main, [*command, str(model)]).output
        assert "evil]0;1[m" in said
        assert "\x1b]0" not in said


def test_where_no_terminal_shows_a_bar_lines_say_how_far_it_is(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codespec.system.progress.LINE_EVERY_S", -1.0)
    hub.content, hub.stated = bundled(BUNDLED_DRAFT).read_bytes(), None
    said = run("add", f"{hub.address}/data/some.gguf", "--json")
    assert json.loads(said.stdout)["name"] == "some"
    assert "some.gguf: 3 of 3 MB\n" in said.stderr


def test_an_interrupted_download_says_so(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "fetch", interrupt)
    result = run("add", f"{hub.address}/data/half.gguf")
    assert result.exit_code == 130
    assert "the same command goes on" in result.output


def test_a_known_name_is_fetched_from_the_hub(hub: Hub) -> None:
    hub.content = bundled(BUNDLED_DRAFT).read_bytes()
    hub.stated = hashlib.sha256(hub.content).hexdigest()
    entry = entries.ENTRIES[0]
    facts = json.loads(ok("add", entry.name, "--json"))
    assert facts["verified"]
    assert Path(facts["path"]).name == entry.file


def test_a_known_name_without_a_file_to_fetch(hub: Hub) -> None:
    (name, *_) = catalogue.names_without_download()
    assert "cannot be downloaded by its name" in run("add", name).output
    assert name in ok("recommend").rpartition("then add the file: ")[2]
    assert hub.methods == []


def test_a_known_name_names_its_file_once_that_is_added(
    hub: Hub, config: Path, model: Path
) -> None:
    hub.content, hub.stated = bundled(BUNDLED_TARGET).read_bytes(), None
    entry = next(e for e in entries.ENTRIES if not e.file.islower() and e.file)
    assert f"models add {entry.name}" in run("default", entry.name).output
    ok("add", entry.name)
    path = library.downloads_folder() / entry.file
    ok("default", entry.name)
    assert load_settings(env=dict(os.environ)).model.target == str(path)
    assert json.loads(ok("show", entry.name, "--no-speed", "--json"))["path"] == str(path)
    own = model.rename(model.with_stem(entry.name))
    ok("add", own)
    assert library.find(entry.name) == own, "what is on the list by that very name comes first"
    ok("remove", entry.name)
    assert "models default bundled" in ok("remove", entry.name)
    assert not path.exists()
    assert "no model of that name was added" in run("remove", entry.name).output


def test_another_model_of_the_same_file_name_is_not_overwritten(hub: Hub) -> None:
    hub.content, hub.stated = bundled(BUNDLED_DRAFT).read_bytes(), None
    ok("add", f"{hub.address}/data/one/model.gguf?token=1")
    asked = len(hub.methods)
    refused = run("add", f"{hub.address}/data/two/Model.gguf").output
    assert "model is " in refused
    assert "codespec models remove model" in refused
    assert len(hub.methods) == asked, "said before gigabytes are fetched"
    hub.content = hub.content[:100_000]
    assert "cannot load" in run("add", f"{hub.address}/data/one/model.gguf?token=2").output
    path = library.downloads_folder() / "model.gguf"
    assert path.read_bytes() == bundled(BUNDLED_DRAFT).read_bytes(), "the one that works stays"
    ok("remove", "model")
    assert list(library.downloads_folder().glob("*.gguf*")) == []
