"""Commits whose answer may be lost: what became of one is asked before it is repeated."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.model.errors import OutcomeUnknown
from scrubjay.ports import Result, Store, Tx

_TRIES = 8


def commit(
    store: Store, address: str, work: Callable[[Tx], Result], *, erasing: bool = False
) -> Result:
    """Run `work` in a transaction and return its result once that is durable.

    Where the answer is lost: it happened, and the result is returned; it did not, and `work` runs
    again; or nobody can tell yet, and that is OutcomeUnknown.
    """
    results = list[Result]()
    for left in reversed(range(_TRIES)):
        try:
            store.write(address, lambda tx: results.append(work(tx)), erasing=erasing)
        except OutcomeUnknown as error:
            happened = store.resolve(address, error.commit)
            if happened is None or not (happened or left):
                raise
            if not happened:
                continue
        break
    return results[-1]
