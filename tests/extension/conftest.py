"""Additions are used in real processes, too."""

from __future__ import annotations

from tests.e2e.conftest import home as home
from tests.e2e.conftest import shared_cache as shared_cache
from tests.e2e.conftest import spawn as spawn
