"""What a carrier needs of whoever authorizes its requests: a header now, a better one after a refusal. Nothing more.

`None` in place of one means that the server takes requests as they are (or with headers of the manifest alone).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Authorization(Protocol):
    """One for each server. All times are seconds; nothing here waits for a person."""

    def current(self) -> str | None:
        """The value of `Authorization` that may be sent now, without waiting; None where `ready` has to be awaited."""
        ...

    async def ready(self, seconds: float) -> str:
        """A value to send, refreshed where that is needed, within `seconds`. Raises Fault (verdict `wait` or `never_reached`)."""
        ...

    async def refused(self, used: str, status: int, headers: Mapping[bytes, bytes], seconds: float) -> str:
        """The server answered 401 or 403 to a request sent with `used`: a value for one more try. Raises Fault.

        Header names are lower-case; several `WWW-Authenticate` are joined with `, `.
        """
        ...

    def doubted(self, used: str) -> None:
        """The server answered 401 without a challenge to a request that may not be sent again: the next one gets another value."""
        ...

    def accepted(self, used: str) -> None:
        """The server took a request that was sent with `used`. Cheap; never raises."""
        ...

    def heard(self, headers: Mapping[bytes, bytes]) -> None:
        """Headers of any answer of the server: its `Date` shows how far the clocks are apart. Cheap; never raises."""
        ...

    def mask(self, text: str) -> str:
        """The text without the secrets that this object sends."""
        ...

    def secrets(self) -> Sequence[str]:
        """The values that `mask` takes out, as they are. Cheap: asked for each error that a server sends."""
        ...
