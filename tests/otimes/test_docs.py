"""`otimes docs` serves the built site to this machine only."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from otimes._docs import address, server
from otimes.algebra.errors import OtimesError


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name in ("index.html", "worker.mjs", "python.wasm"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_files_are_served_with_the_types_that_browsers_need(site: Path) -> None:
    with server(site, 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        types = {
            "": "text/html",
            "worker.mjs": "text/javascript",
            "python.wasm": "application/wasm",
        }
        for name, kind in types.items():
            with urlopen(address(serving) + name) as answer:
                assert answer.headers["Content-Type"] == kind
                assert answer.read().decode() == (name or "index.html")
        with pytest.raises(HTTPError, match="404"):
            urlopen(address(serving) + "nothing")
        serving.shutdown()


def test_only_this_machine_is_served(site: Path) -> None:
    with server(site, 0) as serving:
        assert serving.server_address[0] == "127.0.0.1"


def test_a_folder_without_a_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OtimesError, match=r"there is no site in .*: build it with `make docs`"):
        server(tmp_path, 0)


@pytest.mark.parametrize("port", ["taken", 99999])
def test_a_port_that_cannot_be_had_is_refused(site: Path, port: int | str) -> None:
    with server(site, 0) as first:
        chosen = first.server_port if port == "taken" else 99999
        with pytest.raises(OtimesError, match="--port"):
            server(site, chosen)
