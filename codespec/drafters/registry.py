"""Which drafters there are, by the names that `drafting.drafters` gives them.

Lookups and the draft model are made by the engine, which knows what they draft from. Any other one
is a file with a `Drafter` and one call of `register`. Installed packages add theirs as entry points
of the group `codespec.drafters`, whose module makes that call; nothing in a repository does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from codespec.drafters.base import Drafter
from codespec.drafters.cost import CostCurve
from codespec.errors import ConfigError
from codespec.types import ModelInfo, Tokenizer

BUILT_IN = ("lookup", "model")


@dataclass(frozen=True, slots=True)
class Site:
    """Facts that an engine tells a drafter. curve: cost of its passes. max_leaves: most branches
    they take."""

    info: ModelInfo
    tokenizer: Tokenizer
    curve: CostCurve
    max_leaves: int


Make: TypeAlias = Callable[[Site], Drafter]

_added: dict[str, Make] = {}


def register(name: str, make: Make) -> None:
    """Add a drafter; `make` is called once for each target. Raises: ValueError for a name that is
    taken."""
    if name in BUILT_IN or name in _added:
        raise ValueError(f'there is a drafter "{name}" already')
    _added[name] = make


def made(name: str, site: Site) -> Drafter:
    """An added drafter. Raises: ConfigError."""
    check((name,))
    return _added[name](site)


def check(names: tuple[str, ...]) -> None:
    """Raises: ConfigError for a name that is no drafter's."""
    for name in names:
        if name not in BUILT_IN and name not in _added:
            _load(name)
        if name not in BUILT_IN and name not in _added:
            known = ", ".join((*BUILT_IN, *_added))
            raise ConfigError(
                f'unknown drafter "{name}"', f"Known: {known}; none for plain decoding."
            )


def _load(name: str) -> None:
    from importlib.metadata import entry_points  # takes as long as all the rest

    for entry in entry_points(group="codespec.drafters", name=name):
        entry.load()
