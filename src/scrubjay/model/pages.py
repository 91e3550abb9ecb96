"""Pages: the one way in which every verb that lists answers, and is asked to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, Generic, TypeVar, overload

import msgspec
from msgspec import Meta

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Result
from scrubjay.model.text import CheckedRequest, doc

One = TypeVar("One")
Order = tuple[int | str, ...]
"""Where an entry stands in a list: the list ascends by it, and no two have the same."""
PAGE_LIMIT: Final = 10_000
"""Maximum number of entries of a page."""
Cursor = Annotated[
    Annotated[str, Meta(min_length=1, max_length=65_536, pattern=r"\S")] | None,
    doc(
        "Pagination cursor: the `next_cursor` of the page before this one; None for the first page."
    ),
]
NextCursor = Annotated[
    str | None, doc("Pagination cursor of the next page; None on the last page.")
]
PageLimit = Annotated[int, doc("Limit: how many entries a page has at most.", ge=1, le=PAGE_LIMIT)]


class Page(Result, Generic[One], frozen=True, kw_only=True):
    """One page of a list, with the cursor of the next page."""

    data: Annotated[tuple[One, ...], doc("The entries of this page.")]
    next_cursor: NextCursor = None

    def __iter__(self) -> Iterator[One]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    @overload
    def __getitem__(self, index: int) -> One: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[One, ...]: ...
    def __getitem__(self, index: int | slice) -> One | tuple[One, ...]:
        return self.data[index]


class _WithLimit(CheckedRequest, frozen=True):
    """The limit may be given by position, all else by name."""

    limit: PageLimit = 100


class Paged(_WithLimit, frozen=True, kw_only=True):
    """Pagination: how many entries to return, and after which page."""

    cursor: Cursor = None


FIRST: Final = Paged()


def place(cursor: str | None, parts: int = 1) -> tuple[int, ...]:
    """The numbers a cursor is made of, zeros without one; InvalidRequest if it has others."""
    if cursor is None:
        return (0,) * parts
    numbers = cursor.split(".")
    # int() would take many more digits, signs and spaces than `cursor_at` writes.
    if len(numbers) != parts or not all(
        one.isdecimal() and one.isascii() and len(one) < 19 for one in numbers
    ):
        raise _unknown()
    return tuple(map(int, numbers))


def cursor_at(*numbers: int) -> str:
    """The cursor of a place."""
    return ".".join(map(str, numbers))


def paged(
    found: Sequence[One], limit: int, cursor: str | None, order: Callable[[One], Order]
) -> Page[One]:
    """The page of a list that is at hand whole: keyset pagination.

    A cursor says where the last entry stood, so that what comes or goes meanwhile shifts nothing.
    """
    if cursor is not None:
        after = _order(cursor)
        if found and [*map(type, after)] != [*map(type, order(found[0]))]:
            raise _unknown()
        found = [one for one in found if order(one) > after]
    last = order(found[limit - 1]) if len(found) > limit else None
    return Page(
        data=tuple(found[:limit]),
        next_cursor=None if last is None else msgspec.json.encode(last).decode(),
    )


def _order(cursor: str) -> Order:
    try:
        return msgspec.json.decode(cursor, type=Order)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise _unknown() from error


def _unknown() -> InvalidRequest:
    return InvalidRequest("That is not a cursor of this list.", hint="Begin without a cursor.")


def every(listing: Callable[..., Page[One]], **fields: object) -> Iterator[One]:
    """Every entry of a list, page by page: `every(jay.turns, session="chat-7")`."""
    cursor: str | None = None
    while True:
        page = listing(**fields, cursor=cursor)
        yield from page
        if (cursor := page.next_cursor) is None:
            return
