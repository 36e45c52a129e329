# SPDX-License-Identifier: Apache-2.0
"""Modules that a library imports and hardly ever uses: children import them at their first use.

onnx-ir imports SymPy for arithmetic with the names of sizes. Sizes here are those of `nndeploy.values.size`, so each
child of a compile would spend a quarter of a second for nothing.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import Any

RARELY_USED = ("sympy", "onnx_ir._symbolic_shapes")
"""The second takes what it needs out of the first as soon as it is imported."""


class _Deferred(ModuleType):
    """Stands for a module until something is taken out of it; several threads may do so at once."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)
        self._lock = RLock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(importlib.import_module(self.__name__), name)


def defer_imports() -> None:
    """Lets this process import `RARELY_USED` when something is taken out of them; one that is there stays."""
    for name in RARELY_USED:
        sys.modules.setdefault(name, _Deferred(name))
