"""The one exception tree. Every message names the cause and the next step.

"No suggestion" is not an error: it is an empty `Completion`.
"""


class CodespecError(Exception):
    """Base of every error a user may see. `hint` is the next step, shown on its own line."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class ConfigError(CodespecError):
    """A settings file, environment variable or option that cannot be used."""


class ModelError(CodespecError):
    """A model file that is missing, damaged, or unsuitable for what was asked of it."""


class IndexCorruptError(CodespecError):
    """An index file that fails its checks. The cure is always to build it again."""


class IndexBusyError(CodespecError):
    """Another process is writing this index, which can be read afterwards."""


class InputError(CodespecError):
    """A document or position that cannot be completed: no such file, binary, out of range."""


class DaemonError(CodespecError):
    """The daemon cannot be started, reached, or trusted."""


def without_controls(text: str) -> str:
    """`text` of unknown origin, such as a file or a server, without control characters, which a
    terminal obeys."""
    return "".join(filter(str.isprintable, text))
