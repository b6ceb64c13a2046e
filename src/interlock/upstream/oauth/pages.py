"""The few plain pages that a person's browser gets from the callback listener. No scripts, nothing loaded from anywhere."""

from __future__ import annotations

import html
from typing import Final
from urllib.parse import urlsplit

HEADERS: Final = (
    ("Content-Type", "text/html; charset=utf-8"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    ),
    # The address of this page holds an authorization code: nothing may carry it away.
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)

_STYLE: Final = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:38rem;margin:12vh auto;padding:0 1rem;color:#1c1c1c;background:#fff}"
    "h1{font-size:1.35rem}code{background:#eee;padding:0 .2em}"
    "@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}code{background:#333}a{color:#8ab4f8}}"
)


def page(title: str, *paragraphs: str, link: tuple[str, str] | None = None) -> bytes:
    """One page. All text is escaped. `link` is a label and an address, shown only where the address is http or https."""
    body = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
    if link is not None and urlsplit(link[1]).scheme in ("http", "https"):
        body += f'<p><a href="{html.escape(link[1])}">{html.escape(link[0])}</a></p>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{html.escape(title)}</h1>{body}<p>Interlock</p></body></html>\n"
    ).encode()


def plain_words(text: str | None, limit: int = 200) -> str:
    """A server's words as one harmless line, cut."""
    cleaned = "".join(character if character.isprintable() else " " for character in text or "")
    return " ".join(cleaned.split())[:limit]
