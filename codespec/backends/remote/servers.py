"""The backend of addresses: it asks the server what it is, and opens its model as a generator."""

from __future__ import annotations

from codespec.backends.generators import Generator, GeneratorBackend
from codespec.backends.remote import server_address
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.kinds import recognised
from codespec.backends.remote.served_generator import TextFromServer
from codespec.backends.remote.trust import trust_in
from codespec.config import Settings
from codespec.context.families import family_of


class ServerBackend(GeneratorBackend):
    """Servers over HTTP."""

    name = "server"

    def check(self, where: str) -> None:
        server_address.parse(where)

    def open(self, where: str, settings: Settings) -> Generator:
        address = server_address.parse(where)
        trust = trust_in(
            address.host,
            settings.server,
            encrypted=address.is_encrypted,
            loopback=address.is_loopback,
        )
        client = ServerClient(address, trust)
        try:
            kind, served = recognised(client)
        except BaseException:
            client.close()
            raise
        return TextFromServer(client, kind, served, family_of(served.model))


BACKEND = ServerBackend()
