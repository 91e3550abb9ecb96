"""Export and import: everything, sealed to its reader, once, and back to an equal state."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyrage
import pytest

from scrubjay.model.batches import RetainMany
from scrubjay.model.errors import NotFound
from scrubjay.model.requests import USER, Retain
from scrubjay.model.scope import Scope
from scrubjay.surfaces.personal.copies import PART, CopyForm, CopyOrder
from scrubjay.surfaces.personal.exports import Exports, written
from tests.dialects.personal.conftest import Person
from tests.support.engines import MemoryHome

PHRASE = "three jays in one oak"
READER = pyrage.x25519.Identity.generate()
TEA = "Alice prefers green tea"


def filled(alice: Person) -> list[str]:
    """A memory with something in every collection; the ids of its memories."""
    made = [
        alice.store(TEA, category="preference", content_type="preference", topic_tags=["drinks"]),
        alice.store("User reviews reports on Monday", category="work_pattern",
                    content_type="pattern", importance_score=0.9),
        alice.store("User asked about the pipeline", category="conversation",
                    content_type="transcript", session_id="ses_1", channel="slack"),
        alice.store("User manages three people", content_type="summary"),
    ]  # fmt: skip
    corrected = alice.owner.do(
        "rectify", memory_id=made[0], content="Alice prefers mint", reason="asked"
    )
    alice.agent.send("/v1/turns", {"id": "t1", "user": "My sister is Anna.", "assistant": "Ok."})
    talk = {"conversation": "chat", "entries": [{"body": {"role": "user", "content": "Hi"}}]}
    alice.agent.send("/v1/conversations/append", talk)
    alice.agent.send("/v1/documents/put", {"name": "notes/a.md", "value": "Steep for 3 minutes"})
    return [*made, corrected["memory_id"]]


def exports(alice: Person) -> Exports:
    """The worker of the service, which the tests let work when they say so."""
    secret = alice.signer.key(b"personal-export")
    return Exports(alice.engine, alice.clock, secret)


def exported(alice: Person, **asked: Any) -> Any:
    """A finished export of the owner."""
    if "passphrase" not in asked:  # a passphrase takes a second of processor, either way
        asked["recipient"] = str(READER.to_public())
    job = alice.owner.do("export", **asked)
    exports(alice).work()
    return alice.owner.look(f"exports/{job['export_id']}")


def fetched(alice: Person, **asked: Any) -> bytes:
    """The bytes behind the link."""
    return alice.anonymous.get(exported(alice, **asked)["download_url"]).content


def content(alice: Person, **asked: Any) -> Any:
    """The JSON of an export."""
    return json.loads(pyrage.decrypt(fetched(alice, **asked), [READER]))


def test_an_export_is_a_job_with_the_fields_of_the_seed(alice: Person) -> None:
    filled(alice)
    job = alice.owner.do("export", passphrase=PHRASE)
    assert job["download_url"] is None or job["state"] == "ready"
    done = exported(alice)
    assert done.keys() >= {
        "export_id", "download_url", "record_count", "total_size_bytes", "generated_at",
    }  # fmt: skip
    assert done["record_count"] >= 5
    raw = alice.anonymous.get(done["download_url"]).content
    assert len(raw) == done["total_size_bytes"]


def test_the_json_has_the_structure_of_the_seed(alice: Person) -> None:
    filled(alice)
    told = content(alice)
    assert told["export_version"] == "1.0"
    assert (told["user_id"], told["org_id"]) == (alice.user, alice.org)
    assert set(told["categories"]) == {
        "conversation", "work_pattern", "preference", "learned_context",
    }  # fmt: skip
    groups = told["categories"].values()
    assert all(one["count"] == len(one["records"]) for one in groups)
    assert told["record_count"] == sum(one["count"] for one in groups)
    (spoken,) = [
        one for one in told["categories"]["conversation"]["records"] if one["session_id"] == "ses_1"
    ]
    assert spoken["channel"] == "slack"
    assert spoken["created_at"]


def test_an_export_is_complete_by_an_independent_count_of_the_rows(alice: Person) -> None:
    filled(alice)
    told = content(alice)
    rows = alice.living_rows()
    assert told["record_count"] == rows["memory"]
    assert len(told["turns"]) == rows["turn"]
    assert len(told["conversations"]) + len(told["entries"]) == rows["conversation"]
    assert len(told["documents"]) == rows["document"]
    assert told["audit"]
    assert told["complete"] is True


def test_an_export_of_some_categories_has_only_these(alice: Person) -> None:
    filled(alice)
    told = content(alice, categories=["work_pattern"])
    assert list(told["categories"]) == ["work_pattern"]
    assert (told["record_count"], told["complete"], "turns" in told) == (1, False, False)


def test_without_metadata_only_the_fields_of_the_seed_are_in_it(alice: Person) -> None:
    filled(alice)
    (one,) = content(alice, include_metadata=False)["categories"]["work_pattern"]["records"]
    assert one.keys() == {
        "memory_id", "category", "content_type", "content", "session_id", "channel", "topic_tags",
        "created_at",
    }  # fmt: skip


def test_an_export_is_written_while_it_is_read() -> None:
    """Its first piece is on the way before the last memory was opened: it is never held whole."""
    engine, scope = MemoryHome("streamed").engine(), Scope("acme", "alice")
    engine.retain_many(
        scope, RetainMany(tuple(Retain(f"{number} " + "tea " * 100) for number in range(1_000)))
    )
    read, arrived = [0], list[int]()

    def deliver(pieces: Iterator[bytes]) -> None:
        arrived.extend(read[-1] for _ in pieces)

    order = CopyOrder(scope=scope, at=datetime.now(UTC), progress=lambda done, _: read.append(done))
    assert written(engine, order, CopyForm.JSON, USER, deliver) == 1_000
    assert arrived[0] < 300
    assert len(arrived) > 5
    assert read[-1] == 1_000


def test_a_sealed_file_is_kept_and_sent_in_pieces_of_one_size(alice: Person) -> None:
    """However large a memory is: neither the job nor the delivery holds it whole."""
    for number in range(4):
        name, value = f"notes/{number}", "tea " * 150_000
        alice.agent.send("/v1/documents/put", {"name": name, "value": value})
    link = exported(alice)["download_url"]
    sizes = [len(alice.home.blobs.get(alice.address, one)) for one in alice.blobs()]
    assert sizes[:-1] == [PART] * (len(sizes) - 1)
    assert sum(sizes) > 2 * PART
    response = alice.anonymous.get(link)
    assert int(response.headers["content-length"]) == len(response.content) == sum(sizes)
    told = json.loads(pyrage.decrypt(response.content, [READER]))
    assert len(told["documents"]) == 4


def test_markdown_has_a_heading_for_each_category_and_everything_in_it(alice: Person) -> None:
    filled(alice)
    raw = fetched(alice, format="markdown")
    text = pyrage.decrypt(raw, [READER]).decode()
    for said in ("## Work pattern (1)", "Alice prefers mint", "My sister is Anna", "Steep for 3"):
        assert said in text


def test_a_bundle_opens_with_the_passphrase(alice: Person, bob: Person) -> None:
    filled(alice)
    raw = fetched(alice, format="bundle", passphrase=PHRASE)
    assert TEA.encode() not in raw
    loaded = imported(bob, raw, passphrase=PHRASE)
    assert loaded["loaded"] == alice.living_rows()["memory"]


def test_a_file_is_sealed_to_a_passphrase(alice: Person, bob: Person) -> None:
    alice.store(TEA)
    raw = fetched(alice, passphrase=PHRASE)
    assert TEA.encode() not in raw
    assert json.loads(pyrage.passphrase.decrypt(raw, PHRASE))["record_count"] == 1
    assert imported(bob, raw, passphrase=PHRASE)["loaded"] == 1
    body = {"content": base64.b64encode(raw).decode(), "passphrase": "another one"}
    assert bob.owner.refused("import", **body) == (422, "wrong_key")


def test_a_file_is_sealed_to_an_age_recipient(alice: Person) -> None:
    filled(alice)
    raw = fetched(alice)
    assert TEA.encode() not in raw
    assert json.loads(pyrage.decrypt(raw, [READER]))["record_count"] >= 5
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt(raw, [pyrage.x25519.Identity.generate()])


@pytest.mark.parametrize(
    "reader", [{}, {"recipient": "age1x"}, {"passphrase": PHRASE, "recipient": "age1x"}]
)
def test_a_file_has_exactly_one_reader(alice: Person, reader: dict[str, str]) -> None:
    alice.store(TEA)
    assert alice.owner.refused("export", **reader)[0] == 422


def test_a_link_works_once(alice: Person) -> None:
    alice.store(TEA)
    link = exported(alice)["download_url"]
    assert alice.anonymous.get(link).status_code == 200
    assert alice.anonymous.get(link).status_code == 404
    assert alice.blobs() == []


def test_a_link_works_for_24_hours_and_then_the_file_is_gone(alice: Person) -> None:
    alice.store(TEA)
    done = exported(alice)
    alice.clock.advance(seconds=86_401)
    assert alice.anonymous.get(done["download_url"]).status_code == 404
    exports(alice).work()
    assert alice.blobs() == []
    gone = alice.owner.send(f"/v1/personal/exports/{done['export_id']}", method="GET")
    assert gone.status_code == 404


@pytest.mark.parametrize("what", ["signature", "until", "id"])
def test_a_link_that_was_changed_opens_nothing(alice: Person, what: str) -> None:
    alice.store(TEA)
    link = exported(alice)["download_url"]
    path, _, query = link.partition("?")
    changed = {
        "signature": link[:-1] + ("0" if link[-1] != "0" else "1"),
        "until": link.replace("until=", "until=9"),
        "id": f"{path[:-6]}0/file?{query}",
    }[what]
    assert alice.anonymous.get(changed).status_code == 404
    assert alice.anonymous.get(link).status_code == 200


def test_an_export_of_another_is_not_there(alice: Person, bob: Person) -> None:
    alice.store(TEA)
    bob.store(TEA)
    id = exported(alice)["export_id"]
    assert bob.owner.send(f"/v1/personal/exports/{id}", method="GET").status_code == 404


def test_a_key_without_the_grant_exports_nothing(alice: Person) -> None:
    alice.store(TEA)
    assert alice.agent.refused("export", passphrase=PHRASE) == (403, "forbidden")
    assert alice.admin.refused("export", passphrase=PHRASE) == (403, "forbidden")


def test_the_passphrase_is_nowhere_once_the_file_is_sealed(alice: Person) -> None:
    alice.store(TEA)
    exported(alice, passphrase=PHRASE)
    page = alice.engine.documents(Scope("system", "privacy"))
    sheets: list[Any] = [one.value for one in page if one.name[0] == "exports"]
    assert all(not one.get("secret") for one in sheets)
    assert sheets


def test_a_destroy_takes_the_files_along(alice: Person) -> None:
    alice.store(TEA)
    link = exported(alice)["download_url"]
    address = alice.address
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.owner.do("destroy", confirmation_token=token)
    assert alice.home.blobs.names(address) == []
    assert alice.anonymous.get(link).status_code == 404


# -- import ------------------------------------------------------------------------------------


def imported(bob: Person, raw: bytes, **opening: Any) -> Any:
    """The answer to an import."""
    return bob.owner.do("import", content=base64.b64encode(raw).decode(), **opening)


def test_an_import_gives_an_equal_state(alice: Person, bob: Person) -> None:
    filled(alice)
    raw = fetched(alice)
    imported(bob, raw, identity=str(READER))
    ours, theirs = content(alice), content(bob)
    for told in (ours, theirs):
        for name in ("user_id", "exported_at", "audit", "org_id"):
            del told[name]
        for group in told["categories"].values():
            for one in group["records"]:
                one["more"].pop("provenance", None)  # the key by which it came
                one["more"].pop("number")
        for one in (*told["turns"], *told["entries"], *told["documents"]):
            one.pop("key_id", None)
    assert theirs == ours


def test_an_import_can_be_repeated_and_brings_nothing_forgotten_back(alice: Person) -> None:
    made = alice.store(TEA)
    kept = alice.store("Alice lives in Rome")
    raw = fetched(alice)
    alice.owner.do("forget", target={"memory_ids": [made]})
    told = imported(alice, raw, identity=str(READER))
    assert (told["loaded"], told["known"], told["forgotten"]) == (0, 1, 1)
    assert [one["memory_id"] for one in alice.owner.look("memories")["data"]] == [kept]


def test_a_file_of_the_seed_without_more_is_imported_by_its_fields(bob: Person) -> None:
    record = {
        "memory_id": "mem_1", "content": TEA, "session_id": "ses_1", "channel": "slack",
        "topic_tags": ["Q3"], "created_at": "2026-04-12T09:15:00Z", "category": "conversation",
        "content_type": "summary",
    }  # fmt: skip
    told = {
        "export_version": "1.0", "user_id": "usr", "exported_at": "2026-04-15T10:00:00Z",
        "record_count": 1, "categories": {"conversation": {"count": 1, "records": [record]}},
    }  # fmt: skip
    assert imported(bob, json.dumps(told).encode())["loaded"] == 1
    (one,) = bob.owner.look("memories")["data"]
    assert (one["category"], one["content_type"]) == ("conversation", "summary")
    assert one["source"]["session_id"] == "ses_1"


@pytest.mark.parametrize(
    "raw", [b"{", b"{}", b"[]", b'{"export_version": "9"}', b'{"export_version": "1.0"}',
            b'{"export_version":"1.0","categories":{"a":{"records":[{}]}}}',
            b"age-encryption.org/v1\n"]
)  # fmt: skip
def test_what_is_no_export_is_refused_whole(bob: Person, raw: bytes) -> None:
    status, _ = bob.owner.refused("import", content=base64.b64encode(raw).decode())
    assert status == 422


def test_an_agent_imports_nothing(alice: Person) -> None:
    assert alice.agent.refused("import", content="e30=")[0] == 403


def test_of_two_who_follow_a_link_at_once_one_gets_the_file(alice: Person) -> None:
    alice.store(TEA)
    link = exported(alice)["download_url"]
    id = link.split("/")[4]
    until, signature = (one.partition("=")[2] for one in link.split("?")[1].split("&"))
    secret = alice.signer.key(b"personal-export")
    other = Exports(alice.engine, alice.clock, secret)
    late: list[str] = []

    def meet(_: object) -> None:
        with pytest.raises(NotFound):
            other.take(id, until, signature)
        late.append(id)

    first = Exports(alice.engine, alice.clock, secret, reach=meet)
    assert list(first.take(id, until, signature))
    assert late


def test_a_sweep_of_blobs_and_a_verify_leave_the_file_of_an_export(alice: Person) -> None:
    long = alice.store('tea " ' * 10_000)  # its quotation marks make it longer than a cell
    alice.store(TEA)
    alice.owner.do("forget", target={"memory_ids": [long]})
    link = exported(alice)["download_url"]
    scope = Scope.parse(alice.scope)
    alice.engine.rotate(scope)
    alice.engine.finish_due(scope)
    assert alice.engine.verify(scope).sound
    assert alice.anonymous.get(link).status_code == 200
