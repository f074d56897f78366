"""Findings of the doctor's checks."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["ok", "note", "warning", "error"]


class Finding(msgspec.Struct, frozen=True):
    """One finding. area: the check it comes from. level: "error", something does not work;
    "warning", it works worse than it could; "note", nothing is wrong, but there is a choice.
    next_step: the remedy."""

    area: str
    level: Level
    message: str
    next_step: str = ""
