"""Secrets that are planted in a workspace reach no index, no symbol and no draft of it."""

from __future__ import annotations

import json

import msgspec
import pytest

from codespec.cli.index.secret_report import print_secrets
from codespec.index.parsers import Parsers
from codespec.rules import secrets
from tests import planted
from tests.index_support import SETTINGS, Workspace, workspace

__all__ = ["workspace"]
CODE = "def connect(host):\n    token = '%s'\n    return host.open_session(token)\n"
TOKEN = planted.forms(1)["github"]


def stored_texts(workspace: Workspace) -> list[str]:
    """Every document of every segment."""
    decode = workspace.tokenizer.decode
    return [
        decode(segment.doc_tokens(d)).decode("utf-8", "replace")
        for segment, _ in workspace.index().segments()
        for d in range(segment.n_docs)
    ]


def files_of(workspace: Workspace) -> bytes:
    """All bytes of the index on disk, symbols among them."""
    return b"".join(p.read_bytes() for p in workspace.store.folder.iterdir() if p.is_file())


@pytest.mark.parametrize("in_processes", [False, True])
def test_planted_secrets_stay_out(workspace: Workspace, in_processes: bool) -> None:
    those = planted.workspace(11)
    for _, _, path, text in those:
        workspace.write(path, text)
    if in_processes:
        with Parsers(1) as parsers:
            workspace.build(parsers=parsers)
    else:
        workspace.build()
    texts = "\0".join(stored_texts(workspace))
    on_disk = files_of(workspace)
    for label, secret, _, _ in those:
        assert secret[:24] not in texts, label
        assert secret[-16:] not in texts, label
        assert secret.encode() not in on_disk, label
        half = secret[: len(secret) // 2]
        assert not workspace.draft(half).startswith(secret[len(half) :][:4]), label
    indexed = set(workspace.index().paths)
    for _, _, path, _ in those:
        assert (path in indexed) == (path not in planted.NAMES)


def test_the_rest_of_a_file_stays_useful(workspace: Workspace) -> None:
    workspace.write("a.py", CODE % TOKEN)
    workspace.build()
    assert workspace.draft("    return host.open_s", 14) == "ession(token)\n"
    assert workspace.draft("def connect(host):\n    tok", 6) == "en = '"
    assert TOKEN[:4] not in workspace.draft("    token = '")
    (d,) = workspace.index().definitions(["connect"])
    assert (d.first_line, d.last_line) == (1, 3)


def test_signatures_have_no_values(workspace: Workspace) -> None:
    workspace.write(
        "a.py", f"DB_PASSWORD = '{TOKEN}'\n\n\ndef f(api_key='{TOKEN}', n=3):\n    pass\n"
    )
    workspace.build()
    found = {d.name: d.signature for d in workspace.index().definitions(["DB_PASSWORD", "f"])}
    assert found["DB_PASSWORD"].startswith("DB_PASSWORD = '*")
    assert found["f"].endswith("n=3)")
    assert TOKEN[8:20].encode() not in files_of(workspace)


def test_what_is_cut_is_told_without_values(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.write("a.py", CODE % TOKEN)
    workspace.write(
        "b/key.py", f'x = 1\nKEY = """{planted.private_key(2)}"""\npwd = "S0mmer!2024"\n'
    )
    workspace.write(".gitignore", "ignored.py\n")
    workspace.write("ignored.py", CODE % TOKEN)
    print_secrets(workspace.root, SETTINGS, as_json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [(row["path"], row["line"]) for row in rows] == [
        ("a.py", 2),
        ("b/key.py", 2),
        ("b/key.py", 8),
    ]
    assert [set(row) for row in rows] == [{"path", "line", "rule"}] * 3
    print_secrets(workspace.root, SETTINGS, as_json=False)
    told = capsys.readouterr().out
    assert "b/key.py:2: private-key\n" in told
    assert "3 cut out of 2 files" in told
    assert not any(word in told for word in (TOKEN[4:12], "S0mmer", "MII"))


def test_an_index_of_other_rules_is_not_drafted_from(workspace: Workspace) -> None:
    workspace.write("a.py", "alpha_one = beta_two(gamma_three)\n")
    workspace.build()
    made = workspace.store.read_manifest()
    assert made is not None
    for rules in ("7/1000000", f"{made.rules.split('.')[0]}.{secrets.VERSION - 1}/1000000"):
        with workspace.store.writing():
            workspace.store.write_manifest(msgspec.structs.replace(made, rules=rules))
        assert workspace.open() is None
        assert workspace.build().n_tokenised == 1
        assert workspace.draft("alpha_one = beta", 4) == "_two"
