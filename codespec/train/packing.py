"""Text of a package's other files before a window of one, as the prompt builder shows it:

    <|repo_name|> NAME \\n  <|file_sep|> PATH \\n TEXT \\n  ...  <|file_sep|> PATH \\n

and then the window, plain or fill-in-the-middle. What is shown are the pieces that share most names
with the window out of a few drawn from the package, because serving chooses by names, too.

Source: Hui et al. 2024 (the format); Shi et al. 2024 (related texts in one training row).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from codespec.train.corpus import Corpus

N_DRAWN, N_SHOWN = 8, 3
MIN_LINES, MAX_LINES = 6, 60
_NAME = re.compile(r"[^\W\d]\w{2,}")


class Packages:
    """The documents of one split, by package."""

    def __init__(
        self,
        corpus: Corpus,
        documents: npt.NDArray[np.intp],
        encode: Callable[[str], list[int]],
        repository: int,
        file: int,
    ) -> None:
        """repository, file: ids of the two markers."""
        self._corpus, self._encode = corpus, encode
        self._repository, self._file = repository, file
        self._by_package: dict[str, list[int]] = {}
        for document in documents.tolist():
            self._by_package.setdefault(corpus.package(document), []).append(document)

    def context(self, document: int, text: str, room: int, rng: random.Random) -> list[int]:
        """Tokens of other files that go before a text of a document, at most room of them; none
        where its package has no other file, or where there is no room."""
        corpus, package = self._corpus, self._corpus.package(document)
        others = [d for d in self._by_package[package] if d != document]
        last = [self._file, *self._encode(f"{corpus.path(document)}\n")]
        # The packages of npm carry a prefix that no folder has.
        head = [self._repository, *self._encode(f"{package.removeprefix('npm:')}\n")]
        room -= len(head) + len(last)
        if not others or room <= 0:
            return []
        names = set(_NAME.findall(text))
        drawn = [self._piece(rng.choice(others), rng) for _ in range(N_DRAWN)]
        drawn.sort(key=lambda piece: -len(names.intersection(_NAME.findall(piece[1]))))
        shown: dict[str, list[int]] = {}
        for path, piece in drawn:
            tokens = [self._file, *self._encode(f"{path}\n{piece}\n")]
            if len(tokens) <= room and path not in shown and len(shown) < N_SHOWN:
                shown[path] = tokens
                room -= len(tokens)
        if not shown:
            return []
        # The likest piece last, next to the text.
        return [*head, *(t for tokens in reversed(shown.values()) for t in tokens), *last]

    def _piece(self, document: int, rng: random.Random) -> tuple[str, str]:
        """(path, some lines) of a document."""
        lines = self._corpus.text(document).split("\n")
        n = rng.randint(MIN_LINES, MAX_LINES)
        start = rng.randrange(max(1, len(lines) - n + 1))
        return self._corpus.path(document), "\n".join(lines[start : start + n])
