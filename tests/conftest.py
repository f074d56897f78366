"""No test reads or writes the user's own folders or settings."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest

from codespec.config import Settings, load_settings

# Machines are shared and noisy: no test may fail for being slow. `make test` draws the same
# examples everywhere, so that what passed here passes there; the soak draws others each time.
hypothesis.settings.register_profile(
    "codespec",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="SOAK_AMOUNT" not in os.environ,
)
hypothesis.settings.load_profile("codespec")

# Tests share the machine: of threads that spin while they wait, one is quicker than two. Read when
# PyTorch is imported; whoever asks for a number of threads gets it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell has what it starts in the background ignore interrupts, and so would what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write golden files anew")


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("user")
    for name in list(os.environ):
        if name.startswith("CODESPEC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("CODESPEC_CONFIG", "")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CONFIG", "CACHE", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
    monkeypatch.setenv("CODESPEC_MODEL_N_THREADS", "1")


@pytest.fixture(scope="session")
def model_options() -> Settings:
    """The bundled pair with a small window: positions, not prompts, are what tests vary."""
    return load_settings(
        {
            "model": {"n_threads": 1},
            "completion": {"n_prefix_tokens": 192, "n_suffix_tokens": 64},
        },
        env={},
    )
