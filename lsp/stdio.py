"""The process of a language server: JSON-RPC over stdin and stdout, until an editor ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable

from pygls.io_ import StdoutWriter, run_async

from .handlers import make_server
from .pipes import private_stdout, stdin_reader


def serve_stdio() -> None:
    """Serve until `exit`, a signal, or until the editor closes stdin. Raises: SystemExit with LSP's
    status."""
    from codespec.system.log_privacy import PrivacyFilter

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("codespec: %(message)s"))
    handler.addFilter(PrivacyFilter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    # pygls warns about cancel requests that came a moment too late, which is no news; failures are
    # logged by `report_server_error`.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)

    async def serve() -> None:
        server = make_server()
        server.protocol.set_writer(StdoutWriter(private_stdout()))
        serving = asyncio.current_task()
        assert serving is not None
        told: list[int] = []

        def end(number: int) -> None:
            told.append(number)
            serving.cancel()

        try:
            _on_signals(end)
            await run_async(
                stop_event=threading.Event(),
                reader=await stdin_reader(),
                protocol=server.protocol,
                error_handler=server.report_server_error,
            )
        finally:
            _on_signals(told.append)  # a signal does not cut closing short
            await server.close()
            for number in told:
                _end_by(number)

    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(serve())


def _on_signals(act: Callable[[int], object]) -> None:
    """Have `act` called for each signal that asks to end. Windows has none of them; a signal that
    `nohup` ignores stays ignored."""
    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, act, number)


def _end_by(number: int) -> None:
    """End as if the signal had ended the process at once: the parent sees its status."""
    asyncio.get_running_loop().remove_signal_handler(number)
    signal.signal(number, signal.SIG_DFL)  # an exception would wait for what reads a terminal
    signal.raise_signal(number)
