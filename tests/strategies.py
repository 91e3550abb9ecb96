"""Arbitrary values of the domain, for Hypothesis."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from scrubjay.model.clean import clean
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Retain

LETTERS = st.characters(exclude_categories=["Cs"])


def texts(most: int = 200) -> st.SearchStrategy[str]:
    """Any text that says something and may be stored as it is, of any script, with line breaks."""
    found = st.text(LETTERS, min_size=1, max_size=most).map(clean)
    return found.filter(lambda text: bool(text.strip()))


def ids() -> st.SearchStrategy[str]:
    """Any public id, also of foreign making."""
    return st.uuids(version=4).map(lambda one: f"mem-{one}") | st.from_regex(
        r"[A-Za-z0-9][A-Za-z0-9._:-]{0,40}", fullmatch=True
    )


def times() -> st.SearchStrategy[datetime]:
    """Any moment, in UTC, to the microsecond."""
    return st.datetimes(timezones=st.just(UTC))


def metadata() -> st.SearchStrategy[dict[str, object]]:
    """Any small JSON object."""
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | st.text(LETTERS, max_size=8).map(clean)
    values = leaves | st.lists(leaves, max_size=3) | st.dictionaries(texts(8), leaves, max_size=3)
    return st.dictionaries(texts(8), values, max_size=2)


def tags() -> st.SearchStrategy[tuple[str, ...]]:
    """A few tags, each once."""
    return st.lists(texts(20), max_size=4, unique=True).map(tuple)


def provenances() -> st.SearchStrategy[Provenance]:
    """Any provenance."""
    return st.builds(
        Provenance,
        actor=st.sampled_from(Actor),
        session=st.none() | texts(20),
        channel=st.none() | texts(20),
        message_id=st.none() | texts(20),
        said_at=st.none() | times(),
        reason=st.none() | texts(20),
    )


def memories() -> st.SearchStrategy[Memory]:
    """Any memory, with every field used sooner or later."""
    return st.builds(
        Memory,
        id=ids(),
        kind=st.sampled_from(Kind),
        content=texts(),
        recorded_at=times(),
        origin=st.sampled_from(Origin),
        provenance=provenances(),
        speaker=st.none() | texts(20),
        position=st.none() | st.integers(0, 2**53 - 1),
        tags=tags(),
        importance=st.floats(0, 1),
        pinned=st.booleans(),
        key=st.none() | texts(20),
        supersedes=st.none() | ids(),
        superseded_by=st.none() | ids(),
        sources=st.lists(ids(), max_size=3, unique=True).map(tuple),
        retired_at=st.none() | times(),
        archived_at=st.none() | times(),
        valid_from=st.none() | times(),
        valid_to=st.none() | times(),
        expires_at=st.none() | times(),
        metadata=metadata(),
        number=st.integers(0, 2**53 - 1),
        version=st.integers(1, 2**53 - 1),
    )


def retains() -> st.SearchStrategy[Retain]:
    """Any request to retain that does not depend on what the scope holds."""
    return st.builds(
        Retain,
        content=texts(40),
        kind=st.sampled_from(Kind),
        tags=tags(),
        importance=st.floats(0, 1),
        pinned=st.booleans(),
        session=st.none() | texts(8),
        speaker=st.none() | texts(8),
        position=st.none() | st.integers(0, 1000),
        origin=st.sampled_from(Origin),
        channel=st.none() | texts(8),
        message_id=st.none() | texts(8),
        said_at=st.none() | times(),
        valid_from=st.none() | times(),
        valid_to=st.none() | times(),
        expires_at=st.none() | st.datetimes(datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        metadata=metadata(),
    )
