"""Installation: the handle on all scopes of one home, and on one that cannot be opened."""

from __future__ import annotations

import os
from types import TracebackType

from scrubjay import bootstrap, files
from scrubjay.engine.memories import receipts
from scrubjay.model.errors import NotFound
from scrubjay.model.requests import Destroy, Restore
from scrubjay.model.results import Erasure, Loaded, Report
from scrubjay.model.rows import Head
from scrubjay.model.scope import Scope
from scrubjay.settings import Settings


class Installation:
    """What concerns a whole home, or a scope that is gone or not there yet; closed by `with`."""

    def __init__(self, settings: Settings, *, create: bool = False) -> None:
        if not create and not settings.data.exists():
            raise NotFound(
                "Nothing was ever remembered here.",
                hint=f"The data would be in {settings.data}; the first write makes it.",
            )
        self.settings = settings
        self._engine = bootstrap.build(settings)

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.close()

    def scopes(self) -> tuple[Scope, ...]:
        """Every scope that is not destroyed, by name."""
        return self._engine.scopes()

    def head(self, scope: Scope) -> Head:
        """How far a scope has come, frozen or not, and what is due."""
        self._engine.open(scope, create=False)
        return self._engine.head(scope)

    def finish_due(self, scope: Scope) -> None:
        """Finish what earlier verbs left due."""
        self._engine.finish_due(scope)

    def verify_audit(self, scope: Scope) -> Report:
        """Whether a scope's audit trail is whole."""
        return self._engine.verify_audit(scope)

    def restore(
        self,
        scope: Scope,
        source: bytes | str | os.PathLike[str],
        *,
        key: str | None = None,
        anew: bool = False,
    ) -> Loaded:
        """Merge a backup into its scope, which is made if it is gone."""
        return self._engine.restore(scope, Restore(files.read(source), key, anew))

    def destroy(self, scope: Scope, *, confirm: str) -> Erasure:
        """Erase a whole scope, its keys first, even if it does not open any more."""
        return self._engine.destroy(scope, Destroy(confirm=confirm))

    def verify_erased(self, receipt: Erasure | bytes | str | os.PathLike[str]) -> Report:
        """Prove an erasure by its receipt, also after the scope was destroyed."""
        if not isinstance(receipt, Erasure):
            receipt = receipts.from_json(files.read(receipt).decode(errors="replace"))
        return self._engine.verify_erased(receipt)
