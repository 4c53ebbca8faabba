"""The implementation of `otimes docs`: serves the built site to this machine only."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import otimes as ot

ADDRESS = "127.0.0.1"
SITE = Path(__file__).parents[1] / "site"
"""Where `make docs` writes the site."""


class Files(SimpleHTTPRequestHandler):
    """Sends files with the types that modules and WebAssembly need, and logs nothing."""

    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder on the loopback address; port 0 is any that is free.

    Raises OtimesError if there is no site in the folder, or if the port is taken.
    """
    if not (folder / "index.html").is_file():
        raise ot.OtimesError(
            f"there is no site in {folder}: build it with `make docs` in a clone of the repository,"
            " or name the folder with --site"
        )
    handler = functools.partial(Files, directory=str(folder))
    try:
        return ThreadingHTTPServer((ADDRESS, port), handler)
    except OSError as error:
        raise ot.OtimesError(
            f"cannot listen on port {port}: {error.strerror}; choose another one with --port"
        ) from None
    except OverflowError:
        raise ot.OtimesError(f"--port must be from 0 to 65535, got {port}") from None


def address(serving: ThreadingHTTPServer) -> str:
    """Return the address of a server."""
    return f"http://{ADDRESS}:{serving.server_port}/"
