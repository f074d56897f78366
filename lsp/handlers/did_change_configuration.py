"""workspace/didChangeConfiguration, and workspace/configuration, by which editors are asked."""

from __future__ import annotations

import contextlib
import uuid

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ..configuration import SECTION, section_of
from ..language_server import CodespecServer


async def did_change_configuration(
    server: CodespecServer, params: types.DidChangeConfigurationParams
) -> None:
    """Editors either say all that is set, or only that something changed, and are asked. One that
    cannot be asked has taken back what it does not say."""
    pushed = section_of(params.settings)
    if pushed is None and _can_be_asked(server):
        await _pull(server)
    else:
        await server.configure(pushed)


async def ask_configuration(server: CodespecServer) -> None:
    """Ask for the editor's own settings, now and whenever they change."""
    workspace = server.client_capabilities.workspace
    if workspace is None:
        return
    changes = workspace.did_change_configuration
    if changes is not None and changes.dynamic_registration:
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registration = types.Registration(str(uuid.uuid4()), method, options)
        with contextlib.suppress(JsonRpcException, BrokenPipeError):
            await server.client_register_capability_async(types.RegistrationParams([registration]))
    await _pull(server)


def _can_be_asked(server: CodespecServer) -> bool:
    workspace = server.client_capabilities.workspace
    return workspace is not None and bool(workspace.configuration)


async def _pull(server: CodespecServer) -> None:
    if not _can_be_asked(server):
        return
    with contextlib.suppress(JsonRpcException, BrokenPipeError):
        found = await server.workspace_configuration_async(
            types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        )
        await server.configure(found[0] if found else None)
