from __future__ import annotations

import os
import stat
import sys

import pytest

from codespec import config, limits
from codespec.config import load_settings
from codespec.errors import ConfigError
from codespec.rules.ignore import IgnoreRules
from codespec.system import folders


def load(tmp_path, toml="", env=None, options=None):
    file = tmp_path / "config.toml"
    file.write_text(toml)
    return load_settings(options, env=env or {}, config_file=file)


def test_defaults_need_no_file(tmp_path):
    settings = load_settings(env={}, config_file=tmp_path / "none.toml")
    assert settings.model.target == ""
    assert settings.drafting.drafters == ("lookup", "aligned", "model")


def test_later_sources_win(tmp_path):
    toml = "[completion]\nmax_tokens = 10\ntemperature = 0.5\n"
    env = {"CODESPEC_COMPLETION_MAX_TOKENS": "20", "CODESPEC_DRAFTING_DRAFTERS": "lookup"}
    settings = load(tmp_path, toml, env)
    assert settings.completion.max_tokens == 20
    assert settings.completion.temperature == 0.5
    assert settings.drafting.drafters == ("lookup",)
    options = {"completion": {"max_tokens": 30}}
    assert load(tmp_path, toml, env, options).completion.max_tokens == 30
    assert load(tmp_path, env={"CODESPEC_DRAFTING_DRAFTERS": ""}).drafting.drafters == ()


@pytest.mark.parametrize(
    ("toml", "env", "words"),
    [
        ("[completion]\nmax_token = 1", {}, ["completion.max_token", "completion.max_tokens"]),
        ("[complete]\n", {}, ["complete", "completion"]),
        ("[model]\ntarget = 3", {}, ["model.target", "str"]),
        ("max_tokens = 3", {}, ["max_tokens"]),
        ("completion = 3", {}, ["table"]),
        ("[completion", {}, ["config.toml", "Mend"]),
        ("", {"CODESPEC_COMPLETION_MAX_TOKENS": "many"}, ["max_tokens", "many"]),
        ("", {"CODESPEC_INDEXX_ENABLED": "1"}, ["CODESPEC_INDEXX_ENABLED", "index"]),
        ("", {"CODESPEC_MODEL_TARGETS": "x"}, ["model.targets", "model.target"]),
    ],
)
def test_mistakes_are_named_with_the_nearest_key(tmp_path, toml, env, words):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, toml, env)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("model.n_ctx", "-5", "a whole number from 64 to 16,777,216, or 0"),
        ("model.n_ctx", "1", "a whole number from 64 to 16,777,216, or 0"),
        ("model.n_threads", "100000", "a whole number from 0 to 512"),
        ("model.n_gpu_layers", "-2", "a whole number from -1 to 65,536"),
        ("model.max_saved_kv_bytes", "-1", "a whole number from 0 to "),
        ("completion.max_tokens", "-1", "a whole number from 1 to 1,048,576"),
        ("completion.max_tokens", "many", "a whole number from 1 to 1,048,576"),
        ("completion.n_candidates", "0", "a whole number from 1 to 1,048,576"),
        ("completion.temperature", "-1", "a number from 0 to 100"),
        ("completion.temperature", "inf", "a number from 0 to 100"),
        ("completion.n_prefix_tokens", "-1", "a whole number from 0 to 1,048,576"),
        ("completion.deadline_auto_ms", "-0.1", "a number from 0 to 1,000,000,000"),
        ("completion.linger_ms", "inf", "a number from 0 to 1,000,000,000"),
        ("context.max_tokens", "-1", "a whole number from 0 to 1,048,576"),
        ("drafting.max_width", "-1", "a whole number from 0 to 1,048,576"),
        ("index.max_file_bytes", "-1", "a whole number from 0 to "),
        ("daemon.idle_minutes", "nan", "a number from 0 to 1,000,000,000"),
        ("daemon.idle_minutes", "-1", "a number from 0 to 1,000,000,000"),
    ],
)
def test_a_number_out_of_its_range_is_refused(tmp_path, key, value, allowed):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, env={"CODESPEC_" + key.replace(".", "_").upper(): value})
    assert f"{key} = {value!r}: needs to be {allowed}" in str(caught.value)


def test_all_numbers_have_a_range():
    """Otherwise one that nobody thought of goes into arithmetic, or into native code."""
    import typing

    import msgspec

    for kind in config._SECTIONS.values():
        for f in msgspec.structs.fields(kind):
            base = typing.get_args(f.type)[0] if typing.get_args(f.type) else f.type
            assert (base in (int, float)) == bool(limits.range_of(f.type)), f.name


def test_an_unreadable_file_is_an_error_not_a_default(tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load_settings(env={}, config_file=file)


def test_what_cannot_be_read_is_said_in_words(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_settings(env={}, config_file=tmp_path)
    assert caught.value.message.count(str(tmp_path)) == 1
    assert "Errno" not in caught.value.message
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load(tmp_path, "deep = " + 5000 * "[")


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(ConfigError, match="CODESPEC_CONFIG"):
        load_settings(env={"CODESPEC_CONFIG": str(tmp_path / "none.toml")})


def test_the_config_file_may_be_named_from_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.toml").write_text("[completion]\nmax_tokens = 7\n")
    settings = load_settings(env={"CODESPEC_CONFIG": "~/mine.toml"})
    assert settings.completion.max_tokens == 7


def test_a_home_that_is_no_folder_has_no_settings(tmp_path):
    (tmp_path / "null").touch()
    file = tmp_path / "null" / ".config" / "config.toml"
    assert load_settings(env={}, config_file=file) == config.Settings()


def test_folders_follow_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "a" / "b"))
    assert folders.cache_dir() == tmp_path / "a" / "b"
    assert folders.cache_dir().is_dir()
    monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(tmp_path / "run"))
    assert folders.runtime_dir() == tmp_path / "run"
    if os.name == "posix":
        assert folders.runtime_dir().stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(sys.platform != "linux", reason="the fallback is for Linux without a login")
def test_without_a_login_session_sockets_stay_out_of_tmp(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CODESPEC_RUNTIME_DIR")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert folders.runtime_dir() == tmp_path / "run"


@pytest.mark.skipif(sys.platform != "linux", reason="login sessions of freedesktop.org")
@pytest.mark.filterwarnings("error")
def test_a_session_folder_is_used_as_its_specification_has_it(tmp_path, monkeypatch):
    """Never made by us, nor used where others may look in: twice the same answer."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CODESPEC_RUNTIME_DIR")
    (tmp_path / "session").mkdir(mode=0o700)
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "file").touch(mode=0o700)
    monkeypatch.chdir(tmp_path)
    for value in (tmp_path / "none" / "yet", tmp_path / "open", tmp_path / "file", "session", ""):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(value))
        for _ in range(2):
            assert folders.runtime_dir() == tmp_path / "cache" / "run", value
    assert not (tmp_path / "none").exists()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    assert folders.runtime_dir() == tmp_path / "session" / "codespec"
    assert stat.S_IMODE(folders.runtime_dir().stat().st_mode) == 0o700


def test_a_new_cache_folder_is_marked_as_one(tmp_path, monkeypatch):
    """Backups leave it out, and it is no part of a workspace around it."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    mark = folders.cache_dir() / "CACHEDIR.TAG"
    assert mark.read_bytes().startswith(b"Signature: 8a477f597d28d172789f06886806bc55")
    assert "cache" in IgnoreRules(tmp_path).why_excluded(str(mark.parent / "x.py"), is_dir=False)
    # One that was there may hold more than a cache.
    (tmp_path / "all").mkdir()
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "all"))
    assert not any(folders.cache_dir().iterdir())


def test_an_unusable_cache_folder_names_the_variable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigError, match="CODESPEC_CACHE_DIR"):
        folders.cache_dir()


def test_null_is_not_set_and_lists_are_words_between_commas(tmp_path):
    options = {"completion": {"max_tokens": None}}
    assert load(tmp_path, "[completion]\nmax_tokens = 7\n", {}, options).completion.max_tokens == 7
    env = {"CODESPEC_INDEX_EXCLUDE": "*.sql, gen/"}
    assert load(tmp_path, env=env).index.exclude == ("*.sql", "gen/")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('["a,b.py", " gen/"]', ("a,b.py", " gen/")),
        ("[]", ()),
        ("[ab].py, [1]", ("[ab].py", "[1]")),
        ("[1]", ("[1]",)),
    ],
)
def test_a_list_whose_words_hold_commas_is_json(tmp_path, value, words):
    assert load(tmp_path, env={"CODESPEC_INDEX_EXCLUDE": value}).index.exclude == words


def test_a_list_of_one_word_may_be_said_as_a_word(tmp_path):
    file = '[index]\nexclude = "gen/"\n'
    assert load(tmp_path, file, {}).index.exclude == ("gen/",)
    with pytest.raises(ConfigError, match="exclude = 3: needs to be a list of words"):
        load(tmp_path, "[index]\nexclude = 3\n", {})


def test_no_drafters_may_be_said_in_a_word(tmp_path):
    assert load(tmp_path, env={"CODESPEC_DRAFTING_DRAFTERS": "none"}).drafting.drafters == ()
    assert load(tmp_path, '[drafting]\ndrafters = ["none"]\n', {}).drafting.drafters == ()
    assert load(tmp_path, '[drafting]\ndrafters = "none"\n', {}).drafting.drafters == ()
    both = load(tmp_path, env={"CODESPEC_DRAFTING_DRAFTERS": "lookup, none"})
    assert both.drafting.drafters == ("lookup", "none")  # which the engine refuses


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("MODEL_KV_TYPE", "q4", 'needs to be "f16" or "q8_0"'),
        ("INDEX_ENABLED", "no", "needs to be true or false"),
        ("CONTEXT_EDITS", "no", 'needs to be "auto" or "on" or "off"'),
    ],
)
def test_one_of_a_few_values_is_named_with_the_others(tmp_path, name, value, allowed):
    with pytest.raises(ConfigError, match=allowed):
        load(tmp_path, env={f"CODESPEC_{name}": value})


def test_every_setting_has_an_environment_variable(tmp_path):
    """No key holds an underscore ambiguity: each can be set from the environment."""
    import typing

    import msgspec

    samples = {str: "x", int: "64", float: "2.5", bool: "false"}
    for section, kind in config._SECTIONS.items():
        for f in msgspec.structs.fields(kind):
            is_list = isinstance(f.default, tuple)
            parts = typing.get_args(f.type)
            base = parts[0] if typing.get_origin(f.type) is typing.Annotated else f.type
            value = samples.get(base) or ("lookup" if is_list else parts[-1])
            env = {f"CODESPEC_{section}_{f.name}".upper(): value}
            changed = getattr(getattr(load(tmp_path, env=env), section), f.name)
            assert changed == msgspec.convert(
                ("lookup",) if is_list else value, f.type, strict=False
            )


def test_folders_that_others_could_not_find_are_refused(monkeypatch):
    for variable, folder in (("CACHE", folders.cache_dir), ("RUNTIME", folders.runtime_dir)):
        for value in ("here", "./here", "~no-such-user/here"):
            monkeypatch.setenv(f"CODESPEC_{variable}_DIR", value)
            with pytest.raises(ConfigError, match="here"):
                folder()


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path, monkeypatch):
    for name, mode in (("there", 0o755), ("new", 0o700)):
        monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(tmp_path / name))
        if name == "there":
            (tmp_path / name).mkdir(mode=mode)
        assert stat.S_IMODE(folders.runtime_dir().stat().st_mode) == mode


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[completion]\nmax_tokens = 5\n", "utf-8-sig")
    assert load_settings(env={}, config_file=file).completion.max_tokens == 5
