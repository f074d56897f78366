"""Table columns of `codespec models`."""

from __future__ import annotations

from rich.table import Column


def folded(header: str = "") -> Column:
    """A column that a narrow terminal folds over several lines, with nothing cut off."""
    return Column(header, overflow="fold")
