"""Workspaces that are kept on a server, in the background, while somebody works in them.

Nothing is sent unless the user's own settings say so (`server.share_workspace`), and nothing but
what `workspace_upload` says. It is sent slowly: completions of the same machine come first.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from codespec.backends.remote.connection import AbandonedError, ServerClient
from codespec.backends.remote.failures import ServerError
from codespec.backends.remote.server_session import files_of, session_of
from codespec.backends.remote.workspace_upload import WorkspaceRefusedError, WorkspaceUpload
from codespec.index.reader import WorkspaceIndex
from codespec.system.files import FileState, relative

log = logging.getLogger(__name__)

FILE_HEADER = "X-Codespec-File"
BYTES_A_SECOND = 1 << 20
"""Most bytes of batches a second, in the mean."""
LOOK_S = 2.0
"""Seconds between two looks for a newer index."""
CHECK_S = 30.0
"""Seconds after which the server is asked whether it still has the workspace."""
UNUSED_S = 600.0
"""Seconds after its last request for which a workspace is kept up to date."""
CLOSE_S = 5.0
"""Most seconds that closing waits for a request under way."""
PAUSE_S, MAX_PAUSE_S = 30.0, 600.0
"""Pause after a failure; doubled with each further one."""


@dataclass(slots=True)
class _Shared:
    """A workspace. sent: generation of the index that the server has. at_hand: path and opaque id
    of the file that was asked about last."""

    root: str
    upload: WorkspaceUpload
    used_s: float
    index: WorkspaceIndex | None = None
    sent: FileState = None
    checked_s: float = 0.0
    due_s: float = 0.0
    pause_s: float = field(default=PAUSE_S)
    is_taken: bool | None = None
    at_hand: tuple[str, str] = ("", "")


class WorkspaceSharing:
    """Keeps workspaces on one server. For any threads.

    client:     of its own; closed with it.
    vocabulary: hash of the tokens of the indexes.
    """

    def __init__(
        self,
        client: ServerClient,
        vocabulary: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._vocabulary = vocabulary
        self._clock = clock
        self._shared: dict[str, _Shared] = {}
        self._lock = threading.Lock()
        self._wakes = threading.Event()
        self._is_closed = threading.Event()
        self._thread: threading.Thread | None = None

    def headers(self, workspace: str, path: str) -> dict[str, str]:
        """The header that names the file at hand, whose stored copy then does not draft; the
        workspace counts as used. workspace, path: of the request, "" for none."""
        name = session_of(workspace)
        if not name:
            return {}
        with self._lock:
            known = self._shared.get(workspace)
            if known is None:
                upload = WorkspaceUpload(self._client, name, self._slowly, self._is_closed.is_set)
                root = os.path.realpath(workspace)
                known = self._shared[workspace] = _Shared(root, upload, self._clock())
                self._wakes.set()
            known.used_s = self._clock()
            if self._thread is None and not self._is_closed.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="codespec-sharing", daemon=True
                )
                self._thread.start()
        if not path:
            return {}
        if known.at_hand[0] != path:
            known.at_hand = path, _file_in(known.root, path)
        file = known.at_hand[1]
        return {FILE_HEADER: file} if file else {}

    def close(self) -> None:
        self._is_closed.set()
        self._wakes.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        self._client.close()

    # ---- its thread

    def _run(self) -> None:
        while not self._is_closed.is_set():
            self._wakes.clear()
            with self._lock:
                shared = list(self._shared.values())
            for one in shared:
                if not self._is_closed.is_set():
                    self._look(one)
            self._wakes.wait(LOOK_S)

    def _look(self, one: _Shared) -> None:
        now = self._clock()
        if now - one.used_s > UNUSED_S:
            one.index = None  # opened again with its next request
            return
        if now < one.due_s:
            return
        try:
            self._keep(one, now)
        except ServerError as e:
            self._pause(one, e.failure.text)
        except WorkspaceRefusedError as e:
            self._pause(one, str(e))
        except AbandonedError:
            return
        except Exception as e:  # the thread lives on; no traceback, which may carry text
            self._pause(one, type(e).__name__)
        else:
            one.pause_s = PAUSE_S

    def _keep(self, one: _Shared, now: float) -> None:
        if one.index is None:
            one.index = WorkspaceIndex.open(one.root, self._vocabulary)
            if one.index is None:
                return
        if one.is_taken is None:
            one.is_taken = one.upload.is_taken(self._vocabulary)
        if not one.is_taken:
            one.is_taken = None
            one.due_s = now + MAX_PAUSE_S
            log.info("the server takes no workspaces of this vocabulary")
            return
        one.index.refresh()
        generation = one.index.generation
        if generation == one.sent and now - one.checked_s < CHECK_S:
            return
        if generation == one.sent and one.upload.is_there():
            one.checked_s = now
            return
        report = one.upload.bring(one.index)
        one.sent, one.checked_s = generation, now
        log.info(
            "a workspace is on the server: %d new contents, %d tokens, %d bytes",
            report.n_contents,
            report.n_tokens,
            report.n_bytes,
        )

    def _pause(self, one: _Shared, why: str) -> None:
        log.warning("a workspace is not on the server: %s", why)
        one.due_s = self._clock() + one.pause_s
        one.pause_s = min(MAX_PAUSE_S, 2 * one.pause_s)

    def _slowly(self, n_bytes: int) -> None:
        """Wait as long as so many bytes may take."""
        self._is_closed.wait(n_bytes / BYTES_A_SECOND)


def _file_in(root: str, path: str) -> str:
    """The opaque id of a file; "" for one outside the workspace."""
    inside = relative(os.path.realpath(path), root).replace(os.sep, "/")
    return "" if inside.startswith("../") else files_of(root, [inside]).get(inside, "")
