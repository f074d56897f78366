"""Drafts from workspaces of tenants: of the one that asks alone, and until it deletes them."""

from __future__ import annotations

import numpy as np
import pytest

from codespec.cost.cost_curve import FLAT
from codespec.drafters.token_kinds import token_kinds
from codespec.errors import ConfigError
from codespec.serving.batch_cost import BatchCost
from codespec.serving.counters import RowCounters
from codespec.serving.lookup_rows import LookupRows
from codespec.serving.rows import RequestPlace, RowFeed, RowState
from codespec.serving.served_workspaces import MOST_OPEN, ServedWorkspaces
from codespec.serving.tenants.tenant_keys import tenant_id
from codespec.serving.tenants.tenant_settings import TenantSettings
from codespec.serving.vllm_drafter import VARIABLE, settings_from
from codespec.serving.vllm_endpoint import EndpointPlugin
from codespec.serving.vllm_worker import DrafterWorker
from tests.tenants import BLUE, RED, TOKENIZER, TenantServer, opaque, tenant_server

ALONE = "def measure_everything(table, chair):\n    return table.legs + chair.legs\n"
SHARED = "class Shared:\n    def both_have_it(self, number):\n        return self.value - number\n"


class Worker:
    """A worker's drafter over the folder that a server writes."""

    def __init__(self, server: TenantServer) -> None:
        self.workspaces = ServedWorkspaces(
            {}, token_kinds(TOKENIZER), TOKENIZER.hash, 10**9, server.folder
        )
        cost = BatchCost(FLAT, learns=False)
        self.rows = LookupRows(None, self.workspaces, cost, RowCounters())
        self.n = 0

    def draft(self, tenant: str, workspace: str, prompt: str, file: str = "") -> str:
        """The draft of a request that begins."""
        self.n += 1
        named = f"{tenant_id(tenant)}/{opaque(workspace) if workspace else ''}"
        ids = TOKENIZER.encode(prompt)
        place = RequestPlace(named, opaque(file) if file else "")
        row = RowState(self.n, ids, len(ids), len(ids), 16, place)
        steps, ended = RowFeed().steps([row], ())
        (chain,) = self.rows.draft(steps, ended, 1e6)
        return TOKENIZER.decode(np.array(chain, np.int32)).decode()


@pytest.fixture
def server(tmp_path):
    with tenant_server(tmp_path) as made:
        yield made


@pytest.fixture
def worker(server):
    return Worker(server)


def test_a_workspace_drafts_as_soon_as_it_is_sent(server, worker):
    prompt = "x = 1\ndef measure_every"
    assert worker.draft("red", "w", prompt) == ""
    server.share("w", {"a.py": ALONE})
    assert worker.draft("red", "w", prompt) == "thing(table, cha"
    server.share("w", {"a.py": ALONE.replace("table", "sofa")})
    assert worker.draft("red", "w", prompt) == "thing(sofa, chai"


def test_no_other_tenant_is_drafted_for(server, worker):
    server.share("w", {"a.py": ALONE, "b.py": SHARED})
    server.share("w", {"b.py": SHARED}, BLUE)
    prompt = "x = 1\ndef measure_every"
    assert worker.draft("red", "w", prompt)
    for tenant, workspace in (
        ("blue", "w"),
        ("blue", ""),
        ("red", ""),
        ("red", "v"),
        ("none", "w"),
    ):
        assert worker.draft(tenant, workspace, prompt) == ""
    assert worker.draft("blue", "w", "x = 1\ndef both_have") == "_it(self, number"


def test_the_stored_copy_of_the_file_at_hand_does_not_draft(server, worker):
    server.share("w", {"a.py": ALONE, "b.py": SHARED})
    prompt = "x = 1\ndef measure_every"
    assert worker.draft("red", "w", prompt, "b.py") == "thing(table, cha"
    assert worker.draft("red", "w", prompt, "a.py") == ""
    # Without its id it is found by the text that it shares.
    assert worker.draft("red", "w", ALONE[:40] + "\n" + ALONE[:17]) in ("", "thing(table, cha")


@pytest.mark.parametrize("path", ["/codespec/workspaces", f"/codespec/workspaces/{opaque('w')}"])
def test_a_deleted_workspace_drafts_no_more(server, worker, path):
    server.share("w", {"a.py": ALONE})
    prompt = "x = 1\ndef measure_every"
    assert worker.draft("red", "w", prompt)
    assert server.ask("DELETE", path)[0] == 200
    assert worker.draft("red", "w", prompt) == ""
    assert worker.workspaces.index(f"{tenant_id('red')}/{opaque('w')}") is None


def test_a_workspace_that_is_forgotten_leaves_nothing_in_memory(server, worker):
    server.share("w", {"a.py": ALONE})
    worker.draft("red", "w", "def measure_every")
    name = f"{tenant_id('red')}/{opaque('w')}"
    assert name in worker.workspaces._of_tenants
    assert name in worker.workspaces._calibrations
    worker.workspaces.forget([name, "unknown"])
    assert name not in worker.workspaces._of_tenants
    assert name not in worker.workspaces._calibrations


def test_a_workspace_that_was_rewritten_is_opened_anew(server, worker):
    """All that was learned stays, and nothing of the old files."""
    server.share("w", {"a.py": ALONE, "b.py": SHARED})
    prompt = "x = 1\ndef measure_every"
    drafted = worker.draft("red", "w", prompt)
    name = f"{tenant_id('red')}/{opaque('w')}"
    learned = worker.workspaces._calibrations[name]
    worker.rows.let_go([name])
    assert not worker.rows._requests
    worker.workspaces.reopen([name, "unknown"])
    assert name not in worker.workspaces._of_tenants
    assert worker.draft("red", "w", prompt) == drafted
    assert worker.workspaces._calibrations[name] is learned


def test_who_deletes_everything_leaves_nothing_that_was_learned(server, worker):
    server.share("w", {"a.py": ALONE})
    for workspace in ("w", ""):
        worker.draft("red", workspace, "def measure_every")
    mine = {name for name in worker.workspaces._calibrations if name.startswith(tenant_id("red"))}
    assert mine == {f"{tenant_id('red')}/{w}" for w in (opaque("w"), "")}
    assert server.ask("DELETE", "/codespec/workspaces")[0] == 200
    worker.workspaces.forget("/".join(gone) for gone in server.forgotten)
    assert not mine & set(worker.workspaces._calibrations)


def test_what_is_learned_is_a_tenants_own(server, worker):
    names = [f"{tenant_id(t)}/{w}" for t in ("red", "blue") for w in ("", opaque("w"))]

    def n_calibrations() -> int:
        return len({id(worker.workspaces.calibration(name)) for name in names})

    # Whoever makes up names of workspaces takes no room from others.
    assert n_calibrations() == 2
    for key, tenant in ((RED, "red"), (BLUE, "blue")):
        server.share("w", {"a.py": ALONE}, key)
        worker.draft(tenant, "w", "x = 1\ndef measure_every")
    assert n_calibrations() == 4


def test_few_workspaces_are_open_at_once(server, worker, monkeypatch):
    monkeypatch.setattr("codespec.serving.served_workspaces.MOST_OPEN", 2)
    assert MOST_OPEN > 2
    for name in "abc":
        server.share(name, {"a.py": ALONE})
        assert worker.draft("red", name, "x = 1\ndef measure_every")
    assert len(worker.workspaces._of_tenants) == 2
    assert worker.draft("red", "a", "x = 1\ndef measure_every")


@pytest.mark.parametrize(
    "name", ["../../etc", "a/b", f"{'a' * 32}/../{'b' * 32}", "a" * 32, "/", f"{'A' * 32}/", ""]
)
def test_names_that_no_gate_writes_are_unknown(worker, name):
    assert worker.workspaces.index(name) is None
    assert worker.workspaces.calibration(name) is worker.workspaces.calibration("")


TENANTS = '{"tenants": {"keys": "/k", "folder": "/f"%s}%s}'


@pytest.mark.parametrize(
    ("text", "plugins", "why"),
    [
        (TENANTS % ("", ""), "", "VLLM_PLUGINS=codespec"),
        (TENANTS % ("", ""), "other,codespecs", "VLLM_PLUGINS=codespec"),
        (TENANTS % ("", ', "default": "w"'), "codespec", "go without tenants"),
        (TENANTS % ("", ', "workspaces": {"w": "/w"}'), "codespec", "go without tenants"),
        (TENANTS % (', "max_tokens": 0', ""), "codespec", "max_tokens"),
        (TENANTS % (', "quota": 0', ""), "codespec", "quota"),
        (TENANTS % (', "operators": "red"', ""), "codespec", "operators"),
        (TENANTS % (', "removed_s": -1', ""), "codespec", "removed_s"),
        ('{"tenants": {"keys": "k", "folder": "/f"}}', "codespec", "whole path"),
        ('{"tenants": {"folder": "/f"}}', "codespec", "keys"),
    ],
)
def test_settings_that_would_leave_a_door_open_stop_the_start(text, plugins, why):
    with pytest.raises(ConfigError, match=why):
        settings_from({VARIABLE: text, "VLLM_PLUGINS": plugins})


def test_the_plugin_puts_the_gate_before_the_api(server, monkeypatch):
    """With arguments of vLLM's shapes; `tests/team` runs it in vLLM."""
    added = []

    class App:
        def add_middleware(self, kind, **options):
            added.append((kind, options))

    plugin = EndpointPlugin()
    monkeypatch.delenv(VARIABLE, raising=False)
    plugin.attach_router(App())
    assert "Gate" not in [kind.__name__ for kind, _ in added]
    text = f'{{"tenants": {{"keys": "{server.keys}", "folder": "{server.folder}"}}}}'
    monkeypatch.setenv(VARIABLE, text)
    monkeypatch.setenv("VLLM_PLUGINS", "codespec")
    plugin.attach_router(App())
    # What was added last comes first.
    assert added[-1][0].__name__ == "Gate"
    server.keys.unlink()
    with pytest.raises(ConfigError):
        EndpointPlugin().attach_router(App())


def test_a_worker_without_our_drafter_forgets_nothing():
    worker = DrafterWorker()
    worker.model_runner = object()
    worker.codespec_forget(["a/b"])
    worker.codespec_reopen(["a/b"])


def test_quotas_have_defaults():
    settings = TenantSettings(keys="/k", folder="/f")
    assert settings.max_tokens >= 10**7
