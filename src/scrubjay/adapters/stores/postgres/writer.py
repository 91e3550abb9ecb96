"""The writer of one scope: it commits a batch of requests in one transaction, with one sync."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from scrubjay.adapters.group_commit import Request
from scrubjay.adapters.stores.postgres import faults
from scrubjay.adapters.stores.postgres.connections import Connections
from scrubjay.adapters.stores.postgres.transaction import PostgresTx
from scrubjay.model.errors import OutcomeUnknown
from scrubjay.ports import Failpoint, Reach


class ScopeWriter:
    """Commits batches to one scope; its queue allows one thread at a time."""

    def __init__(self, connections: Connections, address: str, reach: Reach) -> None:
        self._connections = connections
        self._address = address
        self._reach = reach
        self._tx = PostgresTx(connections, address)

    def acquire(self, timeout: float) -> None:
        """Begin a transaction and lock the head; nothing has run yet, so it may be tried again."""
        self._tx = PostgresTx(self._connections, self._address)
        try:
            self._tx.begin(timeout)
        except BaseException:  # seam: who fails to begin has nothing to release
            self._tx.end()
            raise

    def release(self) -> None:
        """Give the connection back; a transaction that has not ended is undone with it."""
        self._tx.end()

    def commit(self, batch: Sequence[Request]) -> None:
        """Run and commit the batch, setting the outcome of each; raises a failure of all.

        If the connection breaks, or PostgreSQL aborts the transaction in favor of another one,
        it is OutcomeUnknown, and the name of the commit tells what became of it.
        """
        try:
            undone = self._attempt(self._tx, batch)
        except psycopg.Error as error:
            self._tx.failure = error
            if faults.is_passing(error):
                unknown = OutcomeUnknown("The answer to a commit was lost.", commit=self._tx.name)
                raise unknown from error
            raise faults.fault(error) from error
        if not undone:
            self._reach(Failpoint.STORE_AFTER_COMMIT)

    def _attempt(self, tx: PostgresTx, batch: Sequence[Request]) -> bool:
        """Run every request and commit; whether there was nothing to commit."""
        if len(batch) == 1:
            _run(tx, batch[0], is_own=True)
            if batch[0].error is not None:
                tx.rollback()
                return True
        else:
            for request in batch:
                saved = tx.save()
                _run(tx, request, is_own=request is batch[0])
                if request.error is not None:
                    tx.restore(saved)
                tx.release()
        tx.flush()
        self._reach(Failpoint.STORE_BEFORE_COMMIT)
        tx.commit()
        return False


def _run(tx: PostgresTx, request: Request, *, is_own: bool) -> None:
    """Run the work of a request; its error, if any, is raised where it was submitted."""
    try:
        request.result = request.work(tx)
    except BaseException as error:  # seam: it is raised where the work was submitted
        if isinstance(error, KeyboardInterrupt) and not is_own:
            raise
        request.error = error
    if tx.failure is not None:
        request.error = None
        raise tx.failure
