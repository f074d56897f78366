"""Next edits that were shown and accepted, by language and kind, in the database of
`statistics`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec

SCHEMA = """
CREATE TABLE IF NOT EXISTS next_edit (
    day INTEGER, language TEXT, kind TEXT, n_shown INTEGER, n_accepted INTEGER,
    PRIMARY KEY (day, language, kind)
) WITHOUT ROWID;
"""
ADD = (
    "INSERT INTO next_edit VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, language, kind) DO UPDATE SET "
    "n_shown = n_shown + excluded.n_shown, n_accepted = n_accepted + excluded.n_accepted"
)
DELETE_OLD = "DELETE FROM next_edit WHERE day < ?"
READ = "SELECT kind, n_shown, n_accepted FROM next_edit"
_Number = Annotated[float, msgspec.Meta(lt=sys.float_info.max)]
Row: TypeAlias = tuple[str, _Number, _Number]


class EditCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one kind of next edits."""

    kind: str
    n_shown: int
    n_accepted: int

    @property
    def acceptance(self) -> float:
        """Share of shown edits that were accepted."""
        return self.n_accepted / self.n_shown if self.n_shown else 0.0


def by_kind(rows: Sequence[Row]) -> list[EditCounts]:
    """Counts of all kinds together, as "all", then of each, most shown first; [] for no rows."""
    found: dict[str, tuple[int, int]] = {}
    for kind, n_shown, n_accepted in rows:
        for name in ("all", kind):
            shown, accepted = found.get(name, (0, 0))
            found[name] = shown + int(n_shown), accepted + int(n_accepted)
    counts = [EditCounts(kind=k, n_shown=n[0], n_accepted=n[1]) for k, n in found.items()]
    return sorted(counts, key=lambda c: (c.kind != "all", -c.n_shown, c.kind))
