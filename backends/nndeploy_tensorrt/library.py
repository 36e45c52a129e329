# SPDX-License-Identifier: Apache-2.0
"""The two TensorRT libraries behind one name, loaded when first asked for, and the log that they write.

    rtx       tensorrt_rtx_bindings  builds on any machine for GeForce and RTX GPUs; the GPU finishes the engine at load
    classic   tensorrt               builds on a GPU for that GPU; covers data-centre GPUs and Jetson

Their Python interfaces are the same, so the rest of this backend takes the module as a value. Law: one logger a
library and process, because the library keeps the first one it gets for good.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, TypeAlias

from nndeploy.errors import UnavailableError
from nndeploy.version import install_command

TensorRt: TypeAlias = Any
"""The module `tensorrt_rtx_bindings` (`tensorrt_rtx` only re-exports it) or `tensorrt`: neither has type stubs."""

MAX_LOG_LINES = 2000
_QUIET = ("VERBOSE",)


@dataclass(frozen=True, slots=True)
class Library:
    """A library by its flavour ("rtx", "classic"): its module, the distributions that hold it, what to install."""

    flavour: str
    module: str
    title: str
    distributions: tuple[str, ...]
    package: str
    hint: str


RTX = Library(
    "rtx",
    "tensorrt_rtx_bindings",
    "TensorRT-RTX",
    ("tensorrt-rtx-cu13-bindings", "tensorrt-rtx-cu12-bindings"),
    "tensorrt-rtx-cu13",
    install_command("tensorrt-rtx"),
)
CLASSIC = Library(
    "classic",
    "tensorrt",
    "TensorRT",
    ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
    "tensorrt",
    "pip install tensorrt, on a machine that reaches NVIDIA's package index",
)
LIBRARIES = {library.flavour: library for library in (RTX, CLASSIC)}


@cache
def is_installed(flavour: str) -> bool:
    """Returns whether the library can be found; it is not loaded."""
    return find_spec(LIBRARIES[flavour].module) is not None


@cache
def installed_version(flavour: str) -> str:
    """Returns the version of the installed distribution, "" where none is known; the library is not loaded."""
    for distribution in LIBRARIES[flavour].distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""


@cache
def loaded(flavour: str) -> TensorRt:
    """Returns the library.

    Raises:
        UnavailableError: it is not installed, or does not load.
    """
    library = LIBRARIES[flavour]
    try:
        return import_module(library.module)
    except (ImportError, OSError) as err:
        raise UnavailableError(f"{library.title} is not installed: {err}", hint=library.hint) from err


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message: `severity` is "INTERNAL_ERROR", "ERROR", "WARNING", "INFO" or "VERBOSE"."""

    severity: str
    text: str

    @property
    def is_error(self) -> bool:
        """Whether the library could not do what it was asked."""
        return self.severity in ("INTERNAL_ERROR", "ERROR")


class Log:
    """The messages of one library; `logger` is the object that the library wants."""

    def __init__(self, library: TensorRt) -> None:
        self._kept: deque[LogLine] = deque(maxlen=MAX_LOG_LINES)
        self._lock = threading.RLock()
        self.logger = _logger_for(library, self._kept)

    @contextmanager
    def recording(self) -> Iterator[deque[LogLine]]:
        """Yields the messages that come up in the block; other threads that record wait."""
        with self._lock:
            self._kept.clear()
            yield self._kept

    def last_error(self) -> str:
        """Returns the text of the newest error, or ""."""
        return next((line.text for line in reversed(list(self._kept)) if line.is_error), "")


@cache
def log_of(flavour: str) -> Log:
    """Returns the log of a library, which is loaded if it was not.

    Raises:
        UnavailableError: it is not installed.
    """
    return Log(loaded(flavour))


def _logger_for(library: TensorRt, kept: deque[LogLine]) -> TensorRt:
    """Returns an object of the library's logger interface that appends to `kept`."""

    class Logger(library.ILogger):  # type: ignore[misc]  # the base class is known at run time only
        def __init__(self) -> None:
            library.ILogger.__init__(self)

        def log(self, severity: TensorRt, text: str) -> None:
            if severity.name not in _QUIET:
                kept.append(LogLine(severity.name, text))

    return Logger()
