"""https with a certificate that only this test trusts; and client metadata documents, which there are by https alone."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.fetch import Fetcher, FetchFailed
from interlock.upstream.oauth.registration import RegistrationFailed, register

from .peer import Peer, Say, peer

x509 = pytest.importorskip("cryptography.x509")
REDIRECT = "http://localhost:33500/callback"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new key and a certificate for 127.0.0.1 that signs itself, in one file."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@pytest.fixture
async def host(certificate: Path) -> AsyncIterator[Peer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with peer(context) as running:
        yield running


@pytest.fixture
async def fetch(certificate: Path) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(user_agent="interlock/test", environ={"SSL_CERT_FILE": str(certificate)})
    yield fetcher
    await fetcher.close()


async def test_a_certificate_that_the_environment_names_is_trusted(host: Peer, fetch: Fetcher) -> None:
    host.routes["/a"] = Say(200, {"a": 1})
    assert (await fetch.get(f"{host.root}/a", 10)).json() == {"a": 1}


async def test_a_stranger_is_told_nothing(host: Peer) -> None:
    stranger = Fetcher(user_agent="interlock/test", environ={})
    try:
        with pytest.raises(FetchFailed, match="TLS connection failed") as caught:
            await stranger.post_form(f"{host.root}/token", {"refresh_token": "x"}, 10)
    finally:
        await stranger.close()
    assert (caught.value.sent, caught.value.timeout) == (False, False)
    assert host.seen == []


async def test_a_certificate_for_another_name_is_refused(host: Peer, fetch: Fetcher) -> None:
    with pytest.raises(FetchFailed, match="TLS connection failed") as caught:
        await fetch.get(host.root.replace("127.0.0.1", "localhost") + "/a", 10)
    assert not caught.value.sent
    assert host.seen == []


def found(issuer: str, *, registers: bool) -> Discovered:
    return Discovered(
        server_url="https://s.example/mcp",
        resource="https://s.example/mcp",
        issuer=issuer,
        metadata=ServerMetadata(
            issuer=issuer,
            registration_endpoint=f"{issuer}/register" if registers else None,
            client_id_metadata_document_supported=True,
        ),
    )


def document(host: Peer, redirects: object, client_id: str | None = None) -> OAuth:
    url = f"{host.root}/client.json"
    host.routes["/client.json"] = Say(
        200, {"client_id": client_id or url, "client_name": "x", "redirect_uris": redirects}
    )
    return OAuth(client_metadata_url=url)


@pytest.mark.parametrize("redirects", [[REDIRECT], ["http://localhost/callback", 7], None])
async def test_a_document_that_fits(host: Peer, fetch: Fetcher, redirects: object) -> None:
    settings = document(host, redirects)
    result = await register(fetch, found(host.root, registers=True), settings, {}, REDIRECT, 10)
    assert (result.client_id, result.source) == (settings.client_metadata_url, "metadata-document")
    assert host.paths() == ["/client.json"]


async def test_a_document_that_declares_another_port(host: Peer, fetch: Fetcher) -> None:
    settings = document(host, ["http://localhost:3118/callback"])
    with pytest.raises(RegistrationFailed) as caught:
        await register(fetch, found(host.root, registers=False), settings, {}, REDIRECT, 10)
    assert "oauth.callbackPort" in caught.value.what
    assert "http://localhost:3118/callback" in caught.value.what
    host.routes["/register"] = Say(201, {"client_id": "new"})
    result = await register(fetch, found(host.root, registers=True), settings, {}, REDIRECT, 10)
    assert (result.client_id, result.source) == ("new", "dynamic")


async def test_a_document_of_another_client(host: Peer, fetch: Fetcher) -> None:
    settings = document(host, [REDIRECT], "https://other.example/client.json")
    with pytest.raises(RegistrationFailed, match="client_id other than its address"):
        await register(fetch, found(host.root, registers=True), settings, {}, REDIRECT, 10)
