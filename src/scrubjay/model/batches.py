"""Batches: many memories written with one call, and one receipt for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from msgspec import Meta, Struct
from msgspec.structs import fields, force_setattr

from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.memory import Result
from scrubjay.model.requests import Retain
from scrubjay.model.results import Outcome, Retained
from scrubjay.model.text import check, doc

BATCH_LIMIT: Final = 100_000
"""Maximum number of items of one batch."""

if TYPE_CHECKING:
    Items = Iterable[Retain | Mapping[str, Any] | str]
else:
    Items = tuple[Retain, ...]


class _WithItems(Struct, frozen=True):
    """The items may be given by position, all else by name."""

    items: Annotated[
        Items,
        Meta(
            description="The memories to write, each with the fields of retain, or only its text; "
            f"at most {BATCH_LIMIT:,}."
        ),
    ]


class RetainMany(_WithItems, frozen=True, kw_only=True):
    """Write many memories: an item that is wrong is refused by itself, or all with `atomic`.

    Each item is held as its fields: the verb checks them one by one.
    """

    atomic: Annotated[bool, doc("Whether to write all of them or none, in one transaction.")] = (
        False
    )

    def __post_init__(self) -> None:
        check("atomic", bool, self.atomic)
        if isinstance(self.items, str | Mapping) or not isinstance(self.items, Iterable):
            raise InvalidRequest("items: it must be a list of memories.")
        items = tuple(islice(map(_fields, self.items), BATCH_LIMIT + 1))
        if len(items) > BATCH_LIMIT:
            raise InvalidRequest(
                f"items: a batch may have at most {BATCH_LIMIT:,}.", hint="Split it into several."
            )
        force_setattr(self, "items", items)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def fields(self) -> Sequence[Mapping[str, Any]]:
        """The fields of each item, as they came."""
        return cast(Sequence[Mapping[str, Any]], self.items)


def _fields(item: object) -> Mapping[str, Any]:
    """The fields of an item; what cannot be one is refused as a wrong content."""
    if isinstance(item, Retain):
        given = ((one, getattr(item, one.name)) for one in fields(item))
        return {one.name: value for one, value in given if one.required or value != one.default}
    return item if isinstance(item, Mapping) else {"content": item}


class Refusal(Result, frozen=True, kw_only=True):
    """Why an item of a batch was not written."""

    code: Annotated[str, doc("The code of the error, such as invalid_request.")]
    message: Annotated[str, doc("The error as a sentence; it names the field.")]
    hint: Annotated[str, doc("What can be done about it.")]

    @classmethod
    def of(cls, error: ScrubjayError) -> Refusal:
        """The refusal that an error stands for."""
        return cls(code=error.code, message=error.message, hint=error.hint)


class BatchReceipt(Result, frozen=True, kw_only=True):
    """Result of one item of a batch: a receipt, or a refusal."""

    retained: Annotated[
        Retained | None, doc("The receipt of the write; None if it was refused.")
    ] = None
    refused: Annotated[Refusal | None, doc("Why it was refused; None if it was not.")] = None


class RetainedMany(Result, frozen=True, kw_only=True):
    """Result of a batch: one receipt per item, in the order of the items, each durable."""

    receipts: Annotated[tuple[BatchReceipt, ...], doc("One receipt per item, in their order.")]
    stored: Annotated[int, doc("How many were written.")] = 0
    refused: Annotated[int, doc("How many were refused.")] = 0

    @classmethod
    def of(cls, receipts: Iterable[BatchReceipt]) -> RetainedMany:
        """The result with these receipts."""
        found = tuple(receipts)
        outcomes = [None if one.retained is None else one.retained.outcome for one in found]
        return cls(
            receipts=found,
            stored=outcomes.count(Outcome.STORED),
            refused=outcomes.count(None),
        )

    def __iter__(self) -> Iterator[BatchReceipt]:
        return iter(self.receipts)

    def __len__(self) -> int:
        return len(self.receipts)

    def __getitem__(self, index: int) -> BatchReceipt:
        return self.receipts[index]
