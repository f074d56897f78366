"""Registry of drafters, by the names that the setting `drafting.drafters` lists.

The engine makes the lookup drafter and the draft model itself. Any other drafter is a file with a
`Drafter` and one call of `register`. Those of codespec itself stand in `_SHIPPED`; installed
packages add theirs as entry points of the group `codespec.drafters`, whose module makes that call;
nothing in a repository can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from codespec.cost.cost_curve import CostCurve
from codespec.drafters.base import Drafter
from codespec.errors import ConfigError
from codespec.types import ModelInfo, Tokenizer

BUILT_IN = ("lookup", "model")
_SHIPPED = {"aligned": "codespec.drafters.aligned"}
"""Module by the name of the drafter that it registers."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """Facts about the target that a drafter is made for.

    curve: cost of its passes. max_leaves: most branches of a draft tree; 1: chains only.
    """

    info: ModelInfo
    tokenizer: Tokenizer
    curve: CostCurve
    max_leaves: int


Factory: TypeAlias = Callable[[TargetFacts], Drafter]

_added: dict[str, Factory] = {}


def register(name: str, make: Factory) -> None:
    """Register a drafter under `name`; `make` is called once for each target.

    Raises: ValueError for a name that is taken.
    """
    if name in BUILT_IN or name in _added:
        raise ValueError(f'there is a drafter "{name}" already')
    _added[name] = make


def create(name: str, site: TargetFacts) -> Drafter:
    """Make the registered drafter of that name. Raises: ConfigError for an unknown name."""
    check((name,))
    return _added[name](site)


def check(names: tuple[str, ...]) -> None:
    """Load the modules of these drafters. Raises: ConfigError for an unknown name."""
    for name in names:
        if name not in BUILT_IN and name not in _added:
            _load(name)
        if name not in BUILT_IN and name not in _added:
            known = ", ".join((*BUILT_IN, *_added))
            raise ConfigError(
                f'unknown drafter "{name}"', f"Known: {known}; none for plain decoding."
            )


def _load(name: str) -> None:
    if name in _SHIPPED:
        import_module(_SHIPPED[name])
        return
    from importlib.metadata import entry_points  # takes as long as all the rest

    for entry in entry_points(group="codespec.drafters", name=name):
        entry.load()
