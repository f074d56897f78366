"""What several files of unit tests begin with."""

from __future__ import annotations

from tests.index_support import workspace

__all__ = ["workspace"]
