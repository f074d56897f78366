"""A workspace's states, the changes between them, and the reasons why one is refused."""

from __future__ import annotations

import msgspec

from codespec.backends.remote.token_batches import ContentKey
from codespec.errors import CodespecError


class QuotaError(CodespecError):
    """A tenant wants more than it may have."""


class StaleError(CodespecError):
    """A change to a state that the workspace is not in. state: the one it is in."""

    def __init__(self, state: str) -> None:
        super().__init__("the workspace is in another state", "Send the whole list of its files.")
        self.state = state


class MissingError(CodespecError):
    """A list that names contents which the tenant has not sent. keys: of these."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(f"{len(keys):,} contents are not here", "Send them first.")
        self.keys = keys


class WorkspaceChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A new state of a workspace. base: the state that it changes, "" for none: `files` is the
    whole list then. files: key of its content, by opaque id of each new or changed file. gone: ids
    of files that are there no more."""

    base: str = ""
    files: dict[ContentKey, ContentKey] = {}
    gone: list[ContentKey] = []


class WorkspaceState(msgspec.Struct, frozen=True):
    """A workspace as the server has it. state: see `state_of`. n_tokens: on disk, those of files
    that are gone and not yet rewritten included."""

    id: str
    state: str
    n_files: int
    n_tokens: int
