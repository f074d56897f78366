"""Cost of sending a workspace to a server of tenants: python -m tests.team.upload_cost REPO

The repository is indexed with the bundled model's vocabulary and sent over real HTTP, as a client
does, but without its pauses. Then files change, and what changed is sent. Client and server are one
process here, so the processor time is that of both. Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from codespec.backends.registry import open_vocabulary
from codespec.backends.remote import server_address
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.server_session import session_of
from codespec.backends.remote.trust import Trust
from codespec.backends.remote.workspace_upload import WorkspaceUpload
from codespec.config import IndexSettings
from codespec.index.build import build_index
from codespec.index.reader import WorkspaceIndex
from codespec.index.word_encoder import WordEncoder
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from tests.tenants import RED, tenant_server

CHANGED = (1, 10, 100)


def edit(root: Path, n: int, mark: int) -> None:
    """Change a line of the first `n` Python files."""
    for file in sorted(root.rglob("*.py"))[:n]:
        text = file.read_text("utf-8")
        file.write_text(f"changed_{mark} = {mark}\n{text}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Cost of sending a workspace.")
    parser.add_argument("root", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        left_out = shutil.ignore_patterns(".git", ".venv", "build", "node_modules")
        root = work / "repository"
        shutil.copytree(given.root, root, ignore=left_out, symlinks=True)
        model = stack.enter_context(closing(open_vocabulary(str(bundled(BUNDLED_TARGET)))))
        tokenizer = model.tokenizer
        controls = set(model.special_tokens.values())
        pieces = [b"" if i in controls else tokenizer.piece(i) for i in range(model.info.n_vocab)]
        encoder = WordEncoder(tokenizer)
        build_index(root, encoder, IndexSettings())
        index = WorkspaceIndex.open(root, tokenizer.hash)
        assert index is not None
        server = stack.enter_context(tenant_server(work, pieces, tokenizer.hash))
        address = server_address.parse(server.url)
        client = stack.enter_context(closing(ServerClient(address, Trust(RED))))
        upload = WorkspaceUpload(client, session_of(str(root)))
        for i, n_changed in enumerate((-1, 0, *CHANGED)):
            if n_changed > 0:
                edit(root, n_changed, i)
                build_index(root, encoder, IndexSettings())
                index.refresh()
            wall_s, processor_s = time.perf_counter(), time.process_time()
            report = upload.bring(index)
            processor_s, wall_s = time.process_time() - processor_s, time.perf_counter() - wall_s
            named = "first time" if n_changed < 0 else f"{n_changed} files changed"
            rows.append(
                {"sent": named, **report._asdict(), "processor_s": round(processor_s, 3),
                 "wall_s": round(wall_s, 3)}
            )  # fmt: skip
        print(f"{index.n_tokens:,} tokens in {index.n_files:,} files")
    for row in rows:
        print("  ".join(f"{name} {value:>10}" for name, value in row.items()))
    print(json.dumps({"benchmark": "upload_cost", "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
