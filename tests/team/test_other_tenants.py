"""Drafts from another tenant: none in 10,000 contexts, where two tenants have the same repository.

No engine is needed: rows go through all of `codespec.serving`. One tenant's copy is marked in every
line, so that a draft from it can be told; what the other is drafted is compared with what it is
drafted where it is alone.
"""

from __future__ import annotations

import random
from pathlib import Path

import codespec
from codespec.cost.cost_curve import FLAT
from codespec.drafters.token_kinds import token_kinds
from codespec.serving.batch_cost import BatchCost
from codespec.serving.counters import RowCounters
from codespec.serving.lookup_rows import LookupRows
from codespec.serving.rows import RequestPlace, RowFeed, RowState
from codespec.serving.served_workspaces import ServedWorkspaces
from codespec.serving.tenants.tenant_keys import tenant_id
from tests.tenants import BLUE, RED, TOKENIZER, opaque, tenant_server

N_CONTEXTS = 10_000
N_BEFORE = 80
MARK = "  # of blue"
ROOT = Path(codespec.__file__).parent


class Drafts:
    """A worker's drafter over a folder of tenants, with a row at a time."""

    def __init__(self, folder: Path) -> None:
        kinds = token_kinds(TOKENIZER)
        workspaces = ServedWorkspaces({}, kinds, TOKENIZER.hash, 10**9, folder)
        self._rows = LookupRows(None, workspaces, BatchCost(FLAT, False), RowCounters())
        self._n = 0

    def of(self, tenant: str, prompt: str, file: str) -> str:
        self._n += 1
        ids = TOKENIZER.encode(prompt)
        place = RequestPlace(f"{tenant_id(tenant)}/{opaque('w')}", opaque(file))
        row = RowState(self._n, ids, len(ids), len(ids), 12, place)
        steps, _ = RowFeed().steps([row], ())
        (chain,) = self._rows.draft(steps, [self._n - 1], 1e6)
        return TOKENIZER.decode(chain).decode("utf-8", "replace")


def test_nothing_comes_from_another_tenant(tmp_path):
    texts = {str(path): path.read_text("utf-8") for path in sorted(ROOT.rglob("*.py"))}
    marked = {path: text.replace("\n", f"{MARK}\n") for path, text in texts.items()}
    folders = tmp_path / "both", tmp_path / "alone"
    for folder in folders:
        folder.mkdir()
    with tenant_server(folders[0]) as both, tenant_server(folders[1]) as alone:
        both.share("w", texts, RED)
        both.share("w", marked, BLUE)
        alone.share("w", texts, RED)
        together, by_itself = Drafts(both.folder), Drafts(alone.folder)
        dice = random.Random(7)
        paths = [path for path, text in texts.items() if text.count("\n") > 20]
        n_drafted = n_of_blue = n_blue_sees = n_other = n_third = 0
        for _ in range(N_CONTEXTS):
            text = texts[dice.choice(paths)]
            ends = [i for i, c in enumerate(text) if c == "\n" and i > N_BEFORE]
            end = dice.choice(ends)
            prompt, file = text[end - N_BEFORE : end], dice.choice(paths)
            red = together.of("red", prompt, file)
            n_drafted += bool(red)
            n_of_blue += MARK.strip() in red
            n_other += red != by_itself.of("red", prompt, file)
            n_blue_sees += MARK.strip() in together.of("blue", prompt, file)
            n_third += MARK.strip() in together.of("third", prompt, file)
    print(f"{n_drafted} drafts for red; of blue: {n_of_blue}; other than alone: {n_other}")
    assert n_blue_sees > N_CONTEXTS / 2  # a draft from blue's copy can be told
    assert n_drafted > N_CONTEXTS / 2
    assert (n_of_blue, n_other, n_third) == (0, 0, 0)
