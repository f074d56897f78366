"""The backend of addresses: it asks the server what it is, and opens its model as a generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from codespec.backends.base import KvType, Remark
from codespec.backends.generators import GeneratorBackend
from codespec.backends.remote import server_address
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.failures import ServerError
from codespec.backends.remote.inquiry import Inquiry
from codespec.backends.remote.kinds import recognised
from codespec.backends.remote.served_generator import TextFromServer, TokensFromServer
from codespec.backends.remote.server_address import ServerAddress
from codespec.backends.remote.server_vocabulary import PROBE, vocabulary_of
from codespec.backends.remote.trust import Trust, trust_in
from codespec.backends.remote.workspace_sharing import WorkspaceSharing
from codespec.config import Settings
from codespec.context.families import FAMILIES, Family, family_of
from codespec.errors import CodespecError, ConfigError
from codespec.types import Tokenizer


class ServerBackend(GeneratorBackend):
    """Servers over HTTP."""

    name = "server"

    def check(self, where: str) -> None:
        server_address.parse(where)

    def remarks_on(self, where: str, kv_type: KvType) -> Iterator[Remark]:
        address = server_address.parse(where)
        if not (address.is_encrypted or address.is_loopback):
            yield Remark(
                "warning",
                "text goes to it unencrypted: server.allow_unencrypted = true",
                "Ask it by https:// where others can listen on the way.",
            )

    def open(self, where: str, settings: Settings) -> TokensFromServer | TextFromServer:
        address = server_address.parse(where)
        trust = _trust(address, settings)
        client = ServerClient(address, trust)
        try:
            inquiry = Inquiry(client)
            kind, served = recognised(inquiry, address)
            vocabulary = vocabulary_of(kind, served, address, settings.server, inquiry)
            probed = kind.tokens(inquiry, served.model, PROBE) if vocabulary is not None else None
        except ServerError as e:
            client.close()
            raise e.at(address.url) from None
        except BaseException:
            client.close()
            raise

        def has_same(cancelled: Callable[[], bool]) -> bool:
            again = Inquiry(client, cancelled)
            return kind.served(again, served.model) == served and (
                probed is None or kind.tokens(again, served.model, PROBE) == probed
            )

        opened: TokensFromServer | TextFromServer
        if vocabulary is None:
            family = _family(settings.server.family, served.model)
            opened = TextFromServer(client, kind, served, family)
        else:
            sharing = None
            if settings.server.share_workspace and served.takes_ids:
                own = ServerClient(address, trust)
                sharing = WorkspaceSharing(own, vocabulary.tokenizer.hash)
            opened = TokensFromServer(client, kind, served, vocabulary, sharing)
        opened.has_same = has_same
        return opened

    def trouble(self, where: str, settings: Settings) -> str | None:
        try:
            address = server_address.parse(where)
            with closing(ServerClient(address, _trust(address, settings))) as client:
                recognised(Inquiry(client), address)
        except CodespecError as e:
            return e.message
        return ""

    def tokenizer(self, where: str, settings: Settings) -> Tokenizer:
        opened = self.open(where, settings)
        opened.disconnect()
        return opened.tokenizer


def _trust(address: ServerAddress, settings: Settings) -> Trust:
    return trust_in(
        address.host,
        settings.server,
        encrypted=address.is_encrypted,
        loopback=address.is_loopback,
    )


def _family(named: str, model: str) -> Family | None:
    """The family of a model whose vocabulary is unknown. Raises: ConfigError."""
    if named and family_of(named) is None:
        makes = ", ".join(make for family in FAMILIES for make in family.makes)
        raise ConfigError(f"server.family: no such family: {named}", f"Known: {makes}.")
    return family_of(named or model)


BACKEND = ServerBackend()
