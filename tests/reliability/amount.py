"""How much of a failure a test injects: little in `make test`. The soak asks for much more, and
hears what came of it."""

from __future__ import annotations

import json
import os
import random


def amount(quick: int) -> int:
    """How often a failure is injected: `quick`, or what the soak asks for in this run."""
    return int(os.environ.get("SOAK_AMOUNT", quick))


def tell(**facts: float | str) -> None:
    """Figures for the soak's report; of the same name the last one counts."""
    print(json.dumps(facts))
    path = os.environ.get("SOAK_FACTS")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps(facts) + "\n")


def chance() -> random.Random:
    """Another one at each run; the seed is printed where a test fails."""
    seed = int(os.environ.get("SOAK_SEED", random.randrange(1 << 32)))
    print("SOAK_SEED", seed)
    return random.Random(seed)
