"""Attacks and failures run against the real parts, in the homes of the end-to-end tests."""

from __future__ import annotations

from tests.e2e.conftest import home, scripted, shared_cache, spawn

__all__ = ["home", "scripted", "shared_cache", "spawn"]
