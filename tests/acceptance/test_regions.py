"""Region labels: rows, blobs and keys of one installation are in one region, or nothing is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel
from scrubjay.engine.transfer.move import sharded
from scrubjay.model.errors import InvalidRequest, ScrubjayError, StoreError
from scrubjay.model.requests import Browse, Retain
from tests.acceptance.peers import ALICE
from tests.support.objects import ObjectServer
from tests.support.postgres import PostgresServer

LONG = "a long one " * 5_900
MakeHome = Callable[..., settings.Settings]


@pytest.fixture
def home(tmp_path: Path, postgres: PostgresServer, objects: ObjectServer) -> MakeHome:
    """Settings of a home in eu, of which any part may be another one's."""

    def make(name: str, **given: object) -> settings.Settings:
        made = replace(
            settings.at_home(tmp_path / name),
            store=postgres.database(),
            blobs=objects.address(),
            region="eu",
        )
        return replace(made, **given)

    return make


def remember(found: settings.Settings) -> None:
    """Write what needs all three."""
    engine = bootstrap.build(found)
    engine.retain(ALICE, Retain(content=LONG, metadata={"more": "of it " * 1_000}))
    engine.close()


@pytest.mark.parametrize("part", ["store", "blobs", "keys"])
@pytest.mark.parametrize("region", ["us", "eu-central-1", ""])
def test_what_is_labeled_for_one_region_is_refused_from_another(
    home: MakeHome, part: str, region: str
) -> None:
    """Also where all the others would take it: each has a label of its own."""
    first = home("first")
    remember(first)
    remember(first)  # the keys folder is there by now, and gets its label
    other = home("other", region=region, **{part: getattr(first, part)})
    if part == "blobs" and not region:
        remember(other)  # a process without a region asks no bucket for its label
        return
    with pytest.raises(StoreError, match=f"'eu', this process for '{region or 'none'}'"):
        remember(other)
    remember(home("third", **{part: getattr(first, part)}) if part == "blobs" else first)


def test_of_several_databases_all_are_in_the_region(
    home: MakeHome, postgres: PostgresServer
) -> None:
    foreign = home("foreign", region="us")
    remember(foreign)
    engine = bootstrap.build(home("home", shards=f"second={foreign.store}"))
    store = sharded(engine._ports.store)
    assert not store.named("home").exists("x")
    with pytest.raises(StoreError, match="region"):
        store.named("second").exists("x")
    engine.close()


def test_a_home_is_not_moved_to_another_region(home: MakeHome) -> None:
    here, there = home("here", store="", blobs=""), home("there", region="us")
    remember(here)
    remember(there)
    with pytest.raises(StoreError, match="region"):
        bootstrap.migrate(here, store=there.store, blobs="")
    assert contents(bootstrap.build(here)) == [LONG], "it is as it was"


def contents(engine: Kernel) -> list[str]:
    found = [one.content for one in engine.browse(ALICE, Browse())]
    engine.close()
    return found


@pytest.mark.parametrize(
    ("part", "address", "within"),
    [
        ("root_key", "kms://name?region=eu-central-1", True),
        ("root_key", "kms://name?region=eu", True),
        ("root_key", "kms://name?region=europe-west1", False),
        ("root_key", "kms://name?region=us-east-1", False),
        ("root_key", "kms://name", False),
        ("root_key", "pkcs11:token=a;object=b?module-path=/m.so&region=us", False),
        ("root_key", "pkcs11:token=a;object=b?module-path=/m.so", False),
        ("blobs", "s3://bucket/blobs?region=eu-north-1", True),
        ("blobs", "s3://bucket/blobs?region=us-east-1", False),
        ("blobs", "s3://bucket/blobs", False),
        ("blobs", "s3://bucket/blobs?endpoint=https://s3.example", True),
        ("blobs", "s3://bucket/blobs?endpoint=https://s3.example&region=us", False),
    ],
)
def test_an_address_that_is_not_within_the_region_is_refused(
    tmp_path: Path, part: str, address: str, within: bool
) -> None:
    """Where a provider says the region itself, no label is needed."""
    found = replace(settings.at_home(tmp_path), region="eu", **{part: address})
    if within:
        bootstrap.build(found).close()
        return
    with pytest.raises(InvalidRequest, match="region"):
        bootstrap.build(found)


def test_a_region_has_a_name_that_every_part_can_keep(tmp_path: Path) -> None:
    with pytest.raises(ScrubjayError):
        bootstrap.build(replace(settings.at_home(tmp_path), region="the EU"))
