# SPDX-License-Identifier: Apache-2.0
"""The few things of pytest that `nndeploy.testing` uses, for a machine that has no pytest."""

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any


class SkippedError(Exception):
    """A test was skipped; `str(error)` says why."""


class Caught:
    """What `raises` caught: `value` is the exception."""

    value: BaseException


@contextmanager
def raises(kind: type[BaseException], match: str | None = None) -> Iterator[Caught]:
    """Expects an exception of a kind; `match` is not looked at."""
    caught = Caught()
    try:
        yield caught
    except kind as err:
        caught.value = err
    else:
        raise AssertionError(f"no {kind.__name__} was raised")


def skip(reason: str = "") -> None:
    """Skips the test that calls it."""
    raise SkippedError(reason)


def fail(reason: str = "") -> None:
    """Fails the test that calls it."""
    raise AssertionError(reason)


def _decorator(*_: Any, **__: Any) -> Callable[[Any], Any]:
    return lambda function: function


def put_in_place_if_missing() -> None:
    """Makes `import pytest` give this, unless pytest is installed."""
    if "pytest" in sys.modules or find_spec("pytest") is not None:
        return
    module = types.ModuleType("pytest")
    skip.Exception = SkippedError  # type: ignore[attr-defined]  # as pytest has it
    parts: dict[str, Any] = {
        "raises": raises, "skip": skip, "fail": fail, "fixture": lambda function: function,
        "mark": types.SimpleNamespace(parametrize=_decorator, slow=lambda f: f, skip=_decorator),
    }  # fmt: skip
    vars(module).update(parts)
    sys.modules["pytest"] = module
