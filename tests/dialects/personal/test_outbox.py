"""Recipients are told of each rectification, erasure and restriction, until they have answered."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrubjay import bootstrap, settings
from scrubjay.model.requests import Purge
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint
from scrubjay.service.outbox import SIGNATURE, Outbox, outbox_of
from tests.dialects.personal.conftest import Person
from tests.support import loopback
from tests.support.engines import MemoryHome, SimulatedCrash

TEA = "Alice prefers green tea"


class Recipient:
    """A recipient on this machine: what it was sent, and whether it answers."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/notices"
        self.received: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.answers = True

    @property
    def rights(self) -> list[str]:
        return [one["right"] for one in self.received]


@pytest.fixture
def recipient() -> Iterator[Recipient]:
    found: list[Recipient] = []

    class Handler(loopback.Handler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            body = self.rfile.read(int(self.headers["Content-Length"]))
            one = found[0]
            if one.answers:
                one.bodies.append(body)
                one.received.append(json.loads(body))
                one.headers.append(dict(self.headers))
            self.answer(loopback.Failure(status=200 if one.answers else 503), b"{}")

    with loopback.running(Handler, threading.Event()) as port:
        found.append(Recipient(port))
        yield found[0]


def outbox(alice: Person, *recipients: str) -> Outbox:
    """The outbox of her installation, as each of its processes would make it."""
    found = settings.Settings(data=Path(), keys=Path(), recipients=" ".join(recipients))
    couriers = bootstrap.make_couriers(found, alice.clock)
    box = outbox_of(alice.engine, alice.clock, couriers)
    box.send()
    return box


def of(alice: Person, recipient: Recipient) -> list[Any]:
    """What the recipient was told about her."""
    return [one for one in recipient.received if one["org_id"] == alice.org]


def test_each_right_gives_one_notice_whichever_door_it_came_by(
    alice: Person, recipient: Recipient
) -> None:
    box = outbox(alice, recipient.url)
    made = [alice.store(TEA), alice.store("Alice lives in Rome"), alice.store("Alice sings")]
    new = alice.owner.do("rectify", memory_id=made[0], content="Mint", reason="asked")
    alice.owner.do("forget", target={"memory_ids": [new["memory_id"]]})
    gone = alice.agent.send("/v1/forget", {"ids": [made[1]]})
    assert gone.status_code == 200, gone.text
    alice.admin.send("/v1/freeze", {"level": "all"})
    notice = alice.owner.do("lift")["notice_id"]
    alice.owner.do("lift", notice_id=notice)
    box.send()
    told = of(alice, recipient)
    assert [one["right"] for one in told] == [
        "rectification", "erasure", "erasure", "restriction", "restriction_lifted",
    ]  # fmt: skip
    assert {one["user_id"] for one in told} == {alice.user}
    box.send()
    assert of(alice, recipient) == told, "each once"


def test_a_destroy_is_told_of_after_its_trail_is_gone(alice: Person, recipient: Recipient) -> None:
    box = outbox(alice, recipient.url)
    alice.store(TEA)
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.owner.do("destroy", confirmation_token=token)
    box.send()
    box.send()
    assert [(one["right"], one["verb"]) for one in of(alice, recipient)] == [("erasure", "destroy")]


def test_a_notice_is_signed_for_its_recipient_and_has_no_content(
    alice: Person, recipient: Recipient
) -> None:
    box = outbox(alice, recipient.url)
    made = alice.store(TEA, topic_tags=["zanzibar"])
    alice.owner.do("forget", target={"memory_ids": [made]})
    box.send()
    key = box.recipients[0].key
    for body, headers in zip(recipient.bodies, recipient.headers, strict=True):
        expected = hmac.digest(key, body, hashlib.sha256).hex()
        assert headers[SIGNATURE] == f"sha256={expected}"
        assert headers["Idempotency-Key"] == json.loads(body)["id"]
        for needle in (b"green", b"zanzibar", made.encode()):
            assert needle not in body


def test_who_does_not_answer_is_asked_again_until_the_notice_is_received(
    alice: Person, recipient: Recipient
) -> None:
    box = outbox(alice, recipient.url)
    made = alice.store(TEA)
    alice.owner.do("forget", target={"memory_ids": [made]})
    recipient.answers = False
    assert box.send() >= 1
    assert list(box.failing()) == [(recipient.url, 1)]
    recipient.answers = True
    assert box.send() >= 1, "not before its pause is over"
    assert of(alice, recipient) == []
    alice.clock.advance(seconds=31)
    assert box.send() == 0
    assert [one["right"] for one in of(alice, recipient)] == ["erasure"]
    assert list(box.failing()) == []


def test_a_recipient_that_does_not_answer_holds_up_no_other(
    alice: Person, recipient: Recipient
) -> None:
    box = outbox(alice, "http://127.0.0.1:9/closed", recipient.url)
    made = alice.store(TEA)
    alice.owner.do("forget", target={"memory_ids": [made]})
    assert box.send() >= 1
    assert [one["right"] for one in of(alice, recipient)] == ["erasure"]


def test_a_new_recipient_is_told_of_nothing_before_its_time(
    alice: Person, recipient: Recipient
) -> None:
    made = alice.store(TEA)
    alice.owner.do("forget", target={"memory_ids": [made]})
    alice.clock.advance(seconds=1)
    box = outbox(alice, recipient.url)
    box.send()
    assert of(alice, recipient) == []


def test_the_owner_and_the_administrator_see_who_was_told(
    alice: Person, recipient: Recipient
) -> None:
    box = outbox(alice, recipient.url)
    made = alice.store(TEA)
    alice.owner.do("forget", target={"memory_ids": [made]})
    scope = Scope.parse(alice.scope)
    assert [one.received for one in box.of(scope)] == [False]
    box.send()
    assert [(one.notice.right, one.received) for one in box.of(scope)] == [("erasure", True)]
    assert alice.owner.look("recipients")["data"] == []  # this service names none
    assert alice.agent.send("/v1/personal/recipients", method="GET").status_code == 403


def test_a_purge_of_what_is_past_its_time_is_no_right_that_was_exercised(
    alice: Person, recipient: Recipient
) -> None:
    box = outbox(alice, recipient.url)
    alice.store(TEA, ttl=1)
    alice.clock.advance(days=40)
    alice.engine.purge(Scope.parse(alice.scope), Purge())
    box.send()
    assert of(alice, recipient) == []


@pytest.mark.parametrize("failpoint", [Failpoint.FORGET_COMMITTED, Failpoint.STORE_AFTER_COMMIT])
def test_an_erasure_whose_process_was_killed_is_told_of_by_the_next(
    recipient: Recipient, failpoint: Failpoint
) -> None:
    """What is told is in the trail, in the transaction of the erasure: so no notice is lost."""
    from scrubjay.model.requests import Forget, Retain

    home, scope = MemoryHome("outbox"), Scope("acme", "alice")
    engine = home.engine()
    found = settings.Settings(data=Path(), keys=Path(), recipients=recipient.url)
    couriers = bootstrap.make_couriers(found, home.clock)
    outbox_of(engine, home.clock, couriers).send()
    engine.retain(scope, Retain(TEA, id="mem-a"))
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        engine.forget(scope, Forget(("mem-a",)))
    outbox_of(home.engine(), home.clock, couriers).send()
    assert recipient.rights == ["erasure"]


def test_a_recipient_that_was_told_and_whose_process_was_killed_gets_the_same_id_again(
    recipient: Recipient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scrubjay.model.requests import Forget, Retain

    home, scope = MemoryHome("twice"), Scope("acme", "alice")
    engine = home.engine()
    found = settings.Settings(data=Path(), keys=Path(), recipients=recipient.url)
    couriers = bootstrap.make_couriers(found, home.clock)
    box = outbox_of(engine, home.clock, couriers)
    box.send()
    engine.retain(scope, Retain(TEA, id="mem-a"))
    engine.forget(scope, Forget(("mem-a",)))

    def dies(*_: object) -> None:
        raise SimulatedCrash

    monkeypatch.setattr(box, "_told", dies)
    with pytest.raises(SimulatedCrash):
        box.send()
    outbox_of(home.engine(), home.clock, couriers).send()
    first, second = recipient.received
    assert first == second
