"""Fixtures that several files of unit tests share."""

from __future__ import annotations

from tests.index_support import workspace

__all__ = ["workspace"]
