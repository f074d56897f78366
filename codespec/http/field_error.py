"""The error of a field in a request's body."""

from __future__ import annotations

from codespec.errors import InputError


class FieldError(InputError):
    """A request that cannot be honoured. field: the field that is the reason, "" for none."""

    def __init__(self, field: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.field = field
