"""Grammar-constrained decoding: a mask over the next token from a GBNF grammar, by llama.cpp."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from codespec.backends.llama import gbnf
from codespec.backends.llama.loader import (
    LoadedModel,
    forget_causes,
    last_cause,
    lib,
    sampler_accepts,
)
from codespec.errors import InputError


class GrammarMask:
    """`sampling.LazyMask` of one request. The grammar's rule `root` describes the whole output.

    Raises: InputError for text that is no grammar, or too costly for llama.cpp (`gbnf.check`).
    """

    def __init__(self, model: LoadedModel, grammar: str) -> None:
        self._sampler = None
        self._model = model  # keeps the vocabulary alive
        self._eog = model.info.eog
        # Markers that end an output here, and are text like any other to llama.cpp's grammar.
        self._markers = [
            token for token in self._eog if not lib.llama_vocab_is_eog(model.vocab, token)
        ]
        gbnf.check(grammar)
        forget_causes()
        with _unheard():
            self._sampler = lib.llama_sampler_init_grammar(model.vocab, grammar.encode(), b"root")
        if not self._sampler:
            raise InputError(
                f"not a GBNF grammar with a rule named root{last_cause()}",
                'For example: root ::= "yes" | "no"',
            )
        n = model.n_vocab
        self._data = (lib.llama_token_data * n)()
        kind = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        self._cells = np.frombuffer(self._data, kind)
        self._read: list[int] = []
        self._is_over = False

    def is_done(self, emitted: Sequence[int]) -> bool:
        return False

    def allowed(self, emitted: Sequence[int]) -> npt.NDArray[np.int32]:
        """(n,) ids that may follow `emitted`, ascending. Checks the whole vocabulary."""
        self._follow(emitted)
        if self._is_over:
            return np.array(sorted(self._eog), np.int32)
        cells = self._cells
        cells["id"] = np.arange(len(cells))
        cells["logit"] = 0.0
        self._apply(len(cells))
        cells["logit"][np.isin(cells["id"], self._markers)] = -np.inf
        ids = cells["id"][cells["logit"] == 0.0]
        return np.sort(ids) if len(ids) else np.array(sorted(self._eog), np.int32)

    def permits(self, emitted: Sequence[int], token: int) -> bool:
        """True if `token` may follow `emitted`. Takes microseconds."""
        self._follow(emitted)
        return token in self._eog if self._is_over else self._allows(token)

    def _apply(self, n: int) -> None:
        found = lib.llama_token_data_array(data=self._data, size=n, selected=-1, sorted=False)
        lib.llama_sampler_apply(self._sampler, ctypes.byref(found))

    def _follow(self, emitted: Sequence[int]) -> None:
        if list(emitted[: len(self._read)]) != self._read:
            lib.llama_sampler_reset(self._sampler)
            self._read, self._is_over = [], False
        for token in emitted[len(self._read) :]:
            # llama.cpp ends the process on an end-of-generation token that its grammar does not
            # allow. It may allow a token and then not accept it: one of several characters, where
            # the grammar has some of them and then a token.
            self._is_over = self._is_over or not (
                self._allows(token) and sampler_accepts(self._sampler, token)
            )
            self._read.append(token)

    def _allows(self, token: int) -> bool:
        if token in self._markers:
            return False
        self._cells["id"][0] = token
        self._cells["logit"][0] = 0.0
        self._apply(1)
        return bool(self._cells["logit"][0] == 0.0)

    def close(self) -> None:
        """Free llama.cpp's sampler."""
        if self._sampler:
            lib.llama_sampler_free(self._sampler)
            self._sampler = None

    def __del__(self) -> None:
        self.close()


@contextmanager
def _unheard() -> Generator[None]:
    """Redirect standard error to nowhere: llama.cpp prints a grammar that it cannot parse, and a
    request's text must not get into a log."""
    try:
        heard = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(heard, 2)
        os.close(heard)
