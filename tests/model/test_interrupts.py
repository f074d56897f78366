"""Ctrl-C that comes while llama.cpp is at work, which asks Python meanwhile: it is raised."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import numpy as np
import pytest

from codespec.backends.llama import LlamaTarget, load_model
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.system.processes import ending_in_order


class Once:
    """Ctrl-C, or another signal, the second time that it is called: the first one may be before
    llama.cpp is."""

    def __init__(self, number: signal.Signals = signal.SIGINT) -> None:
        self.number = number
        self.n_calls = 0

    def __call__(self) -> None:
        self.n_calls += 1
        if self.n_calls == 2:
            signal.raise_signal(self.number)

    @property
    def has_come(self) -> bool:
        return self.n_calls >= 2


@pytest.fixture
def prefill():
    """Reads a prompt that is long enough to be asked about, with what to ask."""
    model = load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0)
    target = LlamaTarget(model, n_ctx=512, n_threads=1)
    tokens = np.arange(1, 400, dtype=np.int32)

    def read(cancelled: Callable[[], bool]) -> int:
        target.prefill(tokens, cancelled)
        return target.n_cached

    yield read
    target.close()
    model.close()


def test_an_interrupt_while_a_prompt_is_read(prefill) -> None:
    interrupt = Once()

    def asked() -> bool:
        interrupt()
        return False

    with pytest.raises(KeyboardInterrupt):
        prefill(asked)
    assert interrupt.has_come
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert prefill(lambda: False) > 0  # it goes on


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_another_request_to_end_while_a_prompt_is_read(prefill) -> None:
    request = Once(signal.SIGTERM)

    def asked() -> bool:
        request()
        return False

    with ending_in_order(), pytest.raises(SystemExit) as ended:
        prefill(asked)
    assert request.has_come
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupt_while_a_model_is_loaded() -> None:
    interrupt = Once()
    with pytest.raises(KeyboardInterrupt):
        load_model(bundled(BUNDLED_TARGET), n_gpu_layers=0, on_progress=lambda _: interrupt())
    assert interrupt.has_come


def test_one_that_is_ignored_changes_nothing(prefill) -> None:
    """The model worker ignores them."""
    interrupt = Once()

    def asked() -> bool:
        interrupt()
        return False

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert prefill(asked) > 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupt.has_come
