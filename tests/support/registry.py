"""Which implementations of a port a package has, so that none is left without its contract."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType


def implementations(package: ModuleType, port: type) -> set[type]:
    """The concrete classes of a package that have every method of a port."""
    methods = {name for name in vars(port) if not name.startswith("_")}
    modules = [
        import_module(found.name)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {
        found
        for module in modules
        for _, found in inspect.getmembers(module, inspect.isclass)
        if found is not port and not inspect.isabstract(found) and methods <= set(dir(found))
    }
