"""Endpoints elsewhere: where texts may be sent, and that nothing leads them anywhere else."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from pathlib import Path

import pytest

from scrubjay.adapters.remote import BadStatus, Remote, RemoteTimeout, Unanswered
from scrubjay.model.errors import InvalidRequest
from scrubjay.ports import Clock, SystemClock
from scrubjay.service.issuer import check_url
from scrubjay.testing.clock import FakeClock
from tests.certificates import certificate_for_localhost
from tests.support import loopback
from tests.support.dripping import DRIPS, FLOOD, dripping
from tests.support.embedding_server import serve_embeddings
from tests.support.loopback import Failure

NOT_OURS = (
    # The metadata service of a cloud, its names, and other ways to write an address.
    *("http://169.254.169.254/latest", "http://metadata.google.internal/", "http://[fe80::1]/"),
    *("http://[fd00:ec2::254]/latest", "http://[::ffff:169.254.169.254]/", "http://0xa9fea9fe/"),
    # What is not loopback by its name may become it by its address.
    *("http://127.0.0.1.nip.io/", "http://localtest.me/", "http://localhost.example.com/"),
    *("http://2130706433/", "http://127.1/", "http://0.0.0.0/", "http://0/", "http://[::]/"),
    *("http://10.0.0.1/", "http://192.168.1.1/", "http://a@127.0.0.1/", "http://127.0.0.1@b/"),
    *("file:///etc/passwd", "gopher://127.0.0.1/", "//127.0.0.1/", "unix:/run/docker.sock"),
)


def remote(
    url: str, *, seconds: float = 5, attempts: int = 2, clock: Clock | None = None
) -> Remote:
    return Remote(
        url,
        name="model",
        seconds=seconds,
        attempts=attempts,
        clock=clock or FakeClock(),
        sleep=lambda _: None,
        log=logging.getLogger("test"),
    )


@pytest.mark.parametrize("url", NOT_OURS)
def test_without_tls_nothing_but_this_machine_is_asked(url: str) -> None:
    """So no plain service of a cloud or a local network can be named: it would get a text."""
    with pytest.raises(InvalidRequest):
        remote(url)
    with pytest.raises(InvalidRequest):
        check_url("The issuer", url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_refusal(status: int) -> None:
    with serve_embeddings() as aim, serve_embeddings() as server:
        headers = (("Location", f"{aim.base_url}/embeddings"),)
        server.failures.append(Failure(status=status, headers=headers))
        with pytest.raises(BadStatus):
            remote(server.base_url).post("/embeddings", b'{"input": []}', {}, most_bytes=100)
        assert (len(server.requests), aim.requests) == (1, [])


def test_a_name_that_leads_to_this_machine_gets_nothing_without_its_certificate(
    tmp_path: Path,
) -> None:
    """Whatever a name resolves to: before the certificate is seen, no byte of a text is sent."""
    heard: list[str] = []

    class Handler(loopback.Handler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            heard.append(self.path)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate_for_localhost(tmp_path))
    with (
        loopback.running(Handler, threading.Event(), tls=context) as port,
        pytest.raises(Unanswered),
    ):
        remote(f"https://localhost:{port}").post("/embeddings", b"{}", {}, most_bytes=100)
    assert heard == []


def test_what_was_checked_is_what_is_connected_to_whatever_a_resolver_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plain HTTP is for this machine, so that no resolver can lead a text elsewhere by its name."""
    with serve_embeddings() as server:
        loopback.lying_resolver(monkeypatch)
        url = server.base_url.replace("127.0.0.1", "localhost")
        remote(url, seconds=0.5, attempts=1, clock=SystemClock()).post(
            "/embeddings", b'{"input": ["tea"]}', {}, most_bytes=100_000
        )
        assert len(server.requests) == 1


@pytest.mark.parametrize("drip", DRIPS)
def test_an_endpoint_that_drips_is_given_up_at_the_deadline(drip: str) -> None:
    """Whatever it never finishes: each byte in time is no answer in time."""
    with dripping(*DRIPS[drip]) as (port, _):
        slow = remote(f"http://127.0.0.1:{port}", seconds=0.3, clock=SystemClock(), attempts=1)
        begun = time.monotonic()
        with pytest.raises(RemoteTimeout):
            slow.post("/embeddings", b"{}", {}, most_bytes=100_000)
        assert time.monotonic() - begun < 3


def test_an_answer_without_an_end_is_read_no_further_than_its_limit() -> None:
    with dripping(*FLOOD, pause=0) as (port, sent):
        flood = remote(f"http://127.0.0.1:{port}", clock=SystemClock(), attempts=1)
        with pytest.raises(Unanswered, match="too much"):
            flood.post("/embeddings", b"{}", {}, most_bytes=100_000)
        assert sum(sent) < 20_000_000
