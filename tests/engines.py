"""Engines for tests: a drafter that fails is an error."""

from __future__ import annotations

from functools import partial

from codespec.drafters.guard import GuardPolicy
from codespec.engine.local import LocalEngine

strict_engine = partial(LocalEngine, policy=GuardPolicy.RAISE)
