"""Why files are excluded: tools' folders, secrets, ignore files, links, and hostile trees."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codespec.index.walk import scan
from codespec.rules.exclusion import text_of
from codespec.rules.gitfiles import MAX_BYTES
from codespec.rules.gitignore import MAX_WILDCARDS
from codespec.rules.ignore import MAX_DEPTH, IgnoreRules
from codespec.rules.restrictions import MAX_BYTES as MAX_RESTRICTIONS
from codespec.rules.secrets import find, secret_name
from tests.index_support import git, isolate


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolate(monkeypatch, tmp_path)
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        ".ENV",
        "prod.env",
        "server.pem",
        "tls.key",
        "id_rsa",
        "id_ed25519.pub",
        "credentials",
        "credentials.json",
        ".credentials.yml",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".bash_history",
        ".python_history",
        "secrets.yaml",
        "terraform.tfstate",
        "prod.tfvars",
        "service-account-x.json",
        "a.kdbx",
    ],
)
def test_secret_names(name: str, root: Path) -> None:
    assert secret_name(name)
    assert "secret" in IgnoreRules(root).why_excluded(f"a/{name}")


@pytest.mark.parametrize(
    "name", ["main.py", "environment.py", "keys.py", "credentials.py", "credentials_test.go", "env"]
)
def test_names_of_source_files(name: str, root: Path) -> None:
    assert not secret_name(name)
    assert IgnoreRules(root).why_excluded(name) == ""


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN " + "RSA PRIVATE KEY-----",
        "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----",
        "id = 'AKIA" + "ABCDEFGHIJKLMNOP'",
        "token: ghp_" + "a" * 36,
        "AWS_SECRET_ACCESS_KEY = '" + "a" * 40 + "'",
        "https://me:ghu_" + "a" * 36 + "@github.com/me/it.git",
        "ghr_" + "a1" * 30,
        "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/" + "a" * 24,
        "GOCSPX-" + "a-" * 14,
        "rk_live_" + "a" * 24,
        "SG." + "a" * 22 + "." + "b" * 43,
        "hf_" + "a" * 34,
        "AccountName=a;AccountKey=" + "a" * 86 + "==;",
        "AGE-SECRET-KEY-1" + "A" * 58,
    ],
)
def test_secret_content(text: str) -> None:
    assert find(b"x = 1\n" + text.encode() + b"\n")


@pytest.mark.parametrize(
    "text",
    [
        "AKIA is a prefix",
        "PRIVATE KEY of the house",
        "sk-learn and ghp_",
        "risk-" + "a" * 50,
        "MSG.format(hf_config, AccountKey=key) # hooks.slack.com/services/",
    ],
)
def test_words_that_look_like_secrets(text: str) -> None:
    assert not find(text.encode())


@pytest.mark.parametrize("folder", [".git", "node_modules", "__pycache__", ".venv", ".ssh"])
def test_folders_never_indexed_even_when_asked_for(folder: str, root: Path) -> None:
    (root / ".gitignore").write_text(f"!{folder}/\n!{folder}/**\n")
    (root / ".codespecignore").write_text(f"!{folder}/\n")
    assert folder in IgnoreRules(root).why_excluded(f"a/{folder}/b/x.py")


@pytest.mark.parametrize("marker", ["pyvenv.cfg", "CACHEDIR.TAG"])
def test_folders_marked_as_a_tools(marker: str, root: Path) -> None:
    (root / "mine").mkdir()
    assert IgnoreRules(root).why_excluded("mine/x.py") == ""
    (root / "mine" / marker).touch()
    assert "mine" in IgnoreRules(root).why_excluded("mine/x.py")


def test_own_ignore_files_come_before_gits(root: Path) -> None:
    (root / ".gitignore").write_text("*.gen\n")
    (root / ".ignore").write_text("!keep.gen\ndocs/\n")
    (root / ".codespecignore").write_text("!docs/\n")
    rules = IgnoreRules(root)
    assert rules.why_excluded("a.gen") == "ignored by .gitignore: *.gen"
    assert rules.why_excluded("keep.gen") == ""
    assert rules.why_excluded("docs/x.md") == ""


def test_nearest_file_decides_and_excluded_parents_stay_excluded(root: Path) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / ".gitignore").write_text("*.txt\n/c/\n")
    (root / "a/b/.gitignore").write_text("!x.txt\n")
    (root / "c").mkdir()
    (root / "c/.gitignore").write_text("!*\n")
    rules = IgnoreRules(root)
    assert rules.why_excluded("a/b/x.txt") == ""
    assert rules.why_excluded("a/x.txt")
    assert rules.why_excluded("c/y.py")
    assert rules.why_excluded(root / "a/b/x.txt") == ""


def test_rules_above_a_root_inside_a_repository(root: Path) -> None:
    git(root, "init", "-q")
    (root / "pkg/src").mkdir(parents=True)
    (root / ".gitignore").write_text("*.tmp\n/pkg/src/out.py\n")
    (root / ".git/info/exclude").write_text("mine.py\n")
    rules = IgnoreRules(root / "pkg/src")
    assert rules.why_excluded("a.tmp")
    assert rules.why_excluded("out.py")
    assert rules.why_excluded("mine.py")
    assert rules.why_excluded("main.py") == ""


def test_linked_work_tree(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx")
    git(root, "worktree", "add", "-q", str(root.parent / "other"))
    (root / ".git/info/exclude").write_text("mine.py\n")
    assert IgnoreRules(root.parent / "other").why_excluded("mine.py")


@pytest.mark.parametrize("configured", ["", ".gitconfig", ".config/git/config"])
def test_the_users_global_file(root: Path, configured: str) -> None:
    home = Path(os.environ["HOME"])
    file = home / "excludes" if configured else home / ".config/git/ignore"
    (home / ".config/git").mkdir(parents=True)
    file.write_text("*.bak\n")
    if configured:
        (home / configured).write_text('[core]\n\texcludesFile = "~/excludes"\n')
    assert IgnoreRules(root).why_excluded("x.bak")


@pytest.mark.parametrize(
    ("settings", "is_meant"),
    [
        ("[core]\n\texcludesFile = ~/excludes ; why\n", True),
        ("[core] excludesfile=~/excludes # why\n[user]\n\tname = a\n", True),
        ('[Core]\nexcludesFile = "~/ex"cludes', True),
        ("[core]\nexcludesFile = ~/other\nexcludesFile = ~/excludes\n", True),
        ("[include]\n\tpath = more\n[core]\n\tpager = less\n", True),
        ("[include]\npath = more\n[core]\nexcludesFile = ~/other\n", False),
        ('[core "a"]\nexcludesFile = ~/excludes\n', False),
        ("[other]\nexcludesFile = ~/excludes\n", False),
        ("[core]\n# excludesFile = ~/excludes\n", False),
    ],
)
def test_which_file_that_is_by_gits_settings(root: Path, settings: str, is_meant: bool) -> None:
    home = Path(os.environ["HOME"])
    (home / ".gitconfig").write_text(settings)
    (home / "more").write_text("[core]\nexcludesFile = ~/excludes\n")
    (home / "excludes").write_text("*.bak\n")
    assert bool(IgnoreRules(root).why_excluded("x.bak")) is is_meant
    git(root, "init", "-q")
    assert bool(git(root, "check-ignore", "--no-index", "x.bak")) is is_meant


@pytest.mark.parametrize("ignore_case", ["true", "false"])
def test_capitals_count_where_they_count_for_git(root: Path, ignore_case: str) -> None:
    """Not on macOS and Windows, as git's settings of the repository say."""
    git(root, "init", "-q")
    git(root, "config", "core.ignoreCase", ignore_case)
    (root / ".gitignore").write_text("Build/\n*.LOG\n!Keep.log\n/d/[A-C]?.py\n\u00c9.py\n")
    paths = ["build/a.py", "Build/a.py", "a.log", "keep.log", "d/bx.py", "d/BX.py", "\u00e9.py"]
    rules = IgnoreRules(root)
    asked = "\0".join(paths).encode()
    ignored = git(root, "check-ignore", "-z", "--stdin", "--no-index", stdin=asked).decode()
    assert [p for p in paths if rules.why_excluded(p)] == ignored.split("\0")[:-1]
    assert bool(rules.why_excluded("build/a.py")) is (ignore_case == "true")


def test_settings_that_git_refuses_exclude_nothing(root: Path) -> None:
    settings = Path(os.environ["HOME"], ".gitconfig")
    for text in ("[include]\npath = ~/.gitconfig\npath = ~/.gitconfig\n", "[core]\nexcludesFile\n"):
        settings.write_text(text)
        assert IgnoreRules(root).why_excluded("x.bak") == ""


def test_outside_and_links(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x.py").touch()
    (root / "link").symlink_to(outside)
    (root / ".hidden").mkdir()
    (root / ".hidden/y.py").touch()
    (root / "alias.py").symlink_to(root / ".hidden/y.py")
    (root / ".gitignore").write_text("/.hidden/\n")
    (root / "safe.txt").symlink_to(root.parent / "key.pem")
    rules = IgnoreRules(root)
    assert rules.why_excluded("../x.py") == "outside the workspace"
    assert rules.why_excluded("link/x.py") == "outside the workspace"
    assert "ignored by .gitignore" in rules.why_excluded("alias.py")
    assert "secret" in rules.why_excluded("safe.txt")
    assert "secret" in rules.why_excluded("/elsewhere/.env")


def test_a_root_reached_through_a_link(root: Path) -> None:
    (root / "x.py").touch()
    (root.parent / "l").symlink_to(root)
    rules = IgnoreRules(root.parent / "l")
    assert rules.why_excluded(root.parent / "l" / "x.py") == ""
    assert rules.why_excluded(root / "x.py") == ""


def test_ignore_files_that_are_no_files(root: Path) -> None:
    (root / ".ignore").mkdir()
    os.mkfifo(root / ".gitignore")  # opening it in the usual way would wait for ever
    (root.parent / "elsewhere").write_text("*.py\n")
    (root / ".codespecignore").symlink_to(root.parent / "elsewhere")
    assert IgnoreRules(root).why_excluded("x.py") == ""


def test_an_ignore_file_longer_than_is_read_excludes_all(root: Path) -> None:
    (root / ".gitignore").write_text("#" * (MAX_BYTES - 1))
    assert not IgnoreRules(root).why_excluded("a.py")
    (root / ".gitignore").write_text("#" * MAX_BYTES + "\na.py\n")
    assert "longer" in IgnoreRules(root).why_excluded("b.py")


def test_undecodable_patterns_and_names(root: Path) -> None:
    (root / ".gitignore").write_bytes(b"\xff*.py\n")
    rules = IgnoreRules(root)
    assert rules.why_excluded(os.fsdecode(b"\xffx.py"))
    assert rules.why_excluded("x.py") == ""


def test_depth_is_limited(root: Path) -> None:
    deep = "/".join(["d"] * MAX_DEPTH)
    assert "deep" in IgnoreRules(root).why_excluded(f"{deep}/x.py")


def test_settings_and_the_workspace_can_only_exclude(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / ".codespec.toml").write_text('exclude = ["gen/", "!a.log"]\n')
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / ".codespec.toml").write_text('exclude = ["/here.py"]\n')
    rules = IgnoreRules(sub, exclude=["*.sql", "!a.log", "/top.py"])
    for path, why in (
        ("gen/a.py", "excluded by .codespec.toml: gen/"),
        ("here.py", "excluded by .codespec.toml: /here.py"),
        ("deep/a.sql", "excluded by the settings: *.sql"),
        ("top.py", "excluded by the settings: /top.py"),
        ("a.log", "ignored by ../.gitignore: *.log"),
        ("deep/here.py", ""),
        ("deep/top.py", ""),
    ):
        assert rules.why_excluded(path, is_dir=False) == why


@pytest.mark.parametrize(
    "content",
    [
        b"enabled = false",
        b"enabled = 3",
        b"exclud = []",
        b"\xff",
        b"exclude = [",
        b"[a]",
        b"a" * 99,
        b"a = " + b"1" * 5000,  # more digits than Python reads
        b"#" * MAX_RESTRICTIONS + b"\nexclude = []",
        b"a." * 100_000 + b"b = 1",  # minutes to read
    ],
)
def test_a_workspace_file_that_says_no_or_nonsense_excludes_all(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / ".codespec.toml").write_bytes(content)
    rules = IgnoreRules(tmp_path)
    assert ".codespec.toml" in rules.why_excluded("a.py", is_dir=False)
    assert ".codespec.toml" in text_of(rules.language_exclusion("python"))
    # Not a link to somewhere else.
    (tmp_path / ".codespec.toml").rename(tmp_path / "other")
    (tmp_path / ".codespec.toml").symlink_to("other")
    assert IgnoreRules(tmp_path).why_excluded("a.py", is_dir=False) == ""


def test_a_reason_is_a_line_that_commands_no_terminal(tmp_path: Path) -> None:
    """Also of an editor, whose status shows it."""
    title, overridden = "\x1b]0;a\x07\n", "\u202e"
    (tmp_path / ".gitignore").write_text(f"*.log{title[:-1]}\n*.py[{overridden}x]\n{'y' * 5000}*\n")
    (tmp_path / f"a{title}").mkdir()
    (tmp_path / f"a{title}" / ".gitignore").write_text("b.py\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / ".codespec.toml").write_text(f'"k{title!r}{overridden}" = 1'.replace("'", ""))
    rules = IgnoreRules(tmp_path)
    for name in (f"x.log{title[:-1]}", "x.pyx", "y" * 5000, f"a{title}/b.py", "c/d.py"):
        why = rules.why_excluded(name, is_dir=False)
        assert why.isprintable(), name
        assert 0 < len(why) <= 301
    assert text_of(rules.language_exclusion("python", str(tmp_path / "c" / "d.py"))).isprintable()


def test_wildcards_of_folders_within_folders_count_together(tmp_path: Path) -> None:
    """A hundred files, each of what one may hold, would take a minute, in an editor's request."""
    folder, text = tmp_path, "\n".join(f"*{i}a?" for i in range(MAX_WILDCARDS // 2 - 1))
    for _ in range(20):
        folder /= "d"
        folder.mkdir()
        for name in (".gitignore", ".ignore", ".codespecignore"):
            (folder / name).write_text(text)
        (folder / ".codespec.toml").write_text('exclude = ["*a", "?b"]')
    began = time.process_time()
    why = IgnoreRules(tmp_path).why_excluded(folder / "a.py", is_dir=False)
    assert time.process_time() - began < 3
    assert "more wildcards than are read" in why


def test_a_folders_own_file_holds_below_it(tmp_path: Path) -> None:
    for folder, text in (
        ("", 'disabled_languages = ["sql"]'),
        ("off", "enabled = false"),
        ("gen", 'exclude = ["/out/", "*.pb"]'),
        ("gen/deep", 'enabled = true\ndisabled_languages = ["go"]\nexclude = ["!x.pb"]'),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / ".codespec.toml").write_text(text)
    rules = IgnoreRules(tmp_path)
    for path, why in (
        ("a.pb", ""),
        ("out/a.py", ""),
        ("off/a.py", "switched off in .codespec.toml"),
        ("off/b/c/a.py", "switched off in .codespec.toml"),
        ("gen/a.py", ""),
        ("gen/out/a.py", "excluded by .codespec.toml: /out/"),
        ("gen/deep/out/a.py", ""),
        ("gen/deep/x.pb", "excluded by .codespec.toml: *.pb"),
    ):
        assert rules.why_excluded(path, is_dir=False) == why
    assert [c.path for c in scan(rules, 1000).files] == [
        ".codespec.toml",
        "gen/.codespec.toml",
        "gen/deep/.codespec.toml",
    ]
    for path, language, is_off in (
        ("", "go", False),
        ("", "sql", True),
        ("a.go", "go", False),
        ("gen/deep/a.go", "go", True),
        ("gen/deep/new/a.go", "go", True),
        ("gen/deep/a.sql", "sql", True),
        ("gen/deep/a.py", "python", False),
        ("off/a.py", "python", True),
        ("../a.go", "go", False),
    ):
        assert bool(rules.language_exclusion(language, path and tmp_path / path)) is is_off
