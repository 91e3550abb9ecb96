"""Personal memory in this process: every operation is a method, with its fields over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from msgspec.structs import replace

from scrubjay import bootstrap, codec, settings
from scrubjay.access import Access, Keys, everything
from scrubjay.engine import Kernel
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.surfaces.personal.memory import Personal
from scrubjay.surfaces.personal.operations import OPERATIONS, PersonalOperation

_BY_NAME = {one.name: one for one in OPERATIONS}


class PersonalMemory:
    """The memory of one person, in a home of this machine.

    Each operation is a method that takes its fields by name: `me.store(category=…, …)`.
    """

    def __init__(
        self,
        scope: str,
        home: str | os.PathLike[str] | None = None,
        *,
        passphrase: str | None = None,
        actor: Actor = Actor.USER,
        engine: Kernel | None = None,
    ) -> None:
        found = settings.read(home=home)
        if passphrase is not None:
            found = replace(found, passphrase=passphrase)
        self._own = engine is None
        self._engine = engine or bootstrap.build(found)
        clock = bootstrap.clock()
        access = Access(self._engine, Keys(self._engine, clock), everything(actor))
        self.personal = Personal(
            self._engine, access, Scope.parse(scope), clock, ready=self._engine.open
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every file, unless the engine is another's; idempotent."""
        if self._own:
            self._engine.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = _BY_NAME.get(name.removesuffix("_"))
        if operation is None:
            raise AttributeError(f"{type(self).__name__} has no operation {name!r}")
        return partial(self.do, operation)

    def do(self, operation: PersonalOperation, **fields: Any) -> Any:
        """Perform an operation; what it takes is checked as over HTTP."""
        asked: Any = codec.request(operation.request, fields)
        self.personal.check_owner(asked)
        return operation.method(self.personal, asked)
