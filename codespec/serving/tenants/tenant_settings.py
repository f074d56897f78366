"""Settings of a server with tenants."""

from __future__ import annotations

from typing import Annotated

import msgspec

from codespec.limits import Name, PathText

_Millions = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
_Several = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]


class TenantSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The field `tenants` of the settings of drafting for an engine. Quotas are by tenant."""

    keys: PathText
    """File of keys, see `TenantKeys`."""
    folder: PathText
    """Folder of the workspaces, readable by its owner alone; made if it is missing."""
    operators: tuple[Name, ...] = ()
    """Names of tenants whose keys are shown the engine's metrics, which are of all tenants."""
    max_tokens: _Millions = 50_000_000
    """Most tokens of all workspaces of a tenant, about 5.4 bytes on disk each."""
    max_files: _Several = 200_000
    """Most files of a workspace, and most contents that no workspace lists yet."""
    removed_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 900.0
    """Seconds after which text that no file of a workspace has any more is taken off the disk: what
    holds it is rewritten. 0: with the change that removes it."""
    max_workspaces: _Several = 64
    """Most workspaces; one more takes the place of the one that was used least recently."""
