"""Who owns a callback port proves it: anybody on the machine may take a port that is free, and say what its owner said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.upstream.oauth.logins import desk, port_in
from tests.upstream.oauth.scripted_as import ScriptedServer, click, scripted

from interlock.doctor import kept
from interlock.upstream.oauth import identity
from interlock.upstream.oauth.flow_note import key_of, read_note
from interlock.upstream.oauth.identity import Identity, Stranger, ask, watch


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(30):
        yield made


@asynccontextmanager
async def impostor(port: int, said: bytes) -> AsyncIterator[list[str]]:
    """Says what the owner said, to whatever it is asked."""
    asked: list[str] = []

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b" ")[1].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + said + b"\n")
        await writer.drain()
        if b"watch" not in head:
            writer.close()

    listening = await asyncio.start_server(one, "127.0.0.1", port)
    try:
        yield asked
    finally:
        listening.close()


async def test_the_owner_proves_itself_to_who_can_read_the_note(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        port = port_in((await one.offer()).url)
        for keys in (key_of(one.root), kept.key_of(tmp_path)):
            found = await ask(port, keys)
            assert isinstance(found, Identity)
            assert found.grant == one.id
        for wrong in (lambda id: None, lambda id: "another-key"):
            stranger = await ask(port, wrong)
            assert isinstance(stranger, Stranger)
            assert stranger.claims is not None
            assert stranger.claims.grant == one.id


async def test_no_two_answers_have_the_same_proof(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        port = port_in((await one.offer()).url)
        proofs = [
            json.loads((await click(f"http://127.0.0.1:{port}/interlock?nonce={nonce}"))[1])["proof"]
            for nonce in ("a", "b", "a")
        ]
        assert proofs[0] == proofs[2] != proofs[1]
        for none in ("", "?nonce=", "?nonce=a&nonce=b", "?nonce=" + "a" * (identity.MAX_NONCE + 1)):
            assert json.loads((await click(f"http://127.0.0.1:{port}/interlock{none}"))[1])["proof"] == ""


def test_a_proof_is_for_one_port_path_and_login() -> None:
    made = identity.proof("key", "/interlock", "nonce", 33418, "flow")
    others = [
        ("other", "/interlock", "nonce", 33418, "flow"),
        ("key", "/interlock/watch", "nonce", 33418, "flow"),
        ("key", "/interlock", "nonce2", 33418, "flow"),
        ("key", "/interlock", "nonce", 33419, "flow"),
        ("key", "/interlock", "nonce", 33418, "flow2"),
    ]
    assert made not in {identity.proof(*other) for other in others}
    assert len({identity.proof(*other) for other in others}) == len(others)


async def test_who_repeats_a_dead_owners_words_is_not_followed(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
        port = port_in(first.url)
        said = (await click(f"http://127.0.0.1:{port}/interlock?nonce=ab"))[1].encode()
        note = read_note(one.root, one.id)
        assert note is not None
    async with impostor(port, said) as asked, desk(tmp_path, server) as two:
        assert isinstance(await ask(port, key_of(two.root)), Stranger)
        assert await asyncio.wait_for(watch(port, note.flow_id, key_of(two.root)), 5) is False
        offer = await two.offer()
        assert offer.mine
        assert offer.url != first.url
        assert port_in(offer.url) != port
        assert any(each.startswith("/interlock?nonce=") for each in asked)
        assert "Signed in" in (await click(server.approve(offer.url)))[1]


async def test_each_owner_has_a_key_of_its_own(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
        before = read_note(one.root, one.id)
    async with desk(tmp_path, server) as two:
        assert (await two.offer()).url == first.url
        after = read_note(two.root, two.id)
    assert before is not None
    assert after is not None
    assert before.key
    assert after.key
    assert before.key != after.key
    assert before.key not in repr(before)


def test_a_note_of_an_older_build_proves_nothing(tmp_path: Path) -> None:
    assert key_of(tmp_path / "grants")("0" * 32) is None
    assert key_of(tmp_path / "grants")("../../etc/passwd") is None
    assert kept.key_of(tmp_path)("../../etc/passwd") is None
    assert msgspec.json.decode(b'{"flow":"f","grant":"g","build":"b","pid":1,"open":true}', type=Identity).proof == ""
