# SPDX-License-Identifier: Apache-2.0
"""The cuDNN library, called through its C interface with ctypes: descriptors, plans, execution.

Both halves use it: the planner's child process makes descriptors and plans, a session loads plans and runs them. It is
found in NVIDIA's wheel (nvidia-cudnn-cu13) or by the system's loader. Law: a status other than success becomes a
`CudnnError` with the library's own words.

Source: cudnn_graph_v9.h and cudnn_ops_v9.h of cuDNN 9.28; the names of constants are NVIDIA's without their prefix.
"""

import contextlib
import ctypes
import weakref
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nndeploy.errors import UnavailableError, one_line
from nndeploy.version import install_command

HINT = install_command("cudnn")
LIBRARY_NAME = "libcudnn.so.9"
WHEELS = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
MAX_MESSAGE_BYTES = 4096

ATTRIBUTE_TYPES: dict[str, tuple[int, Any]] = {
    "handle": (0, ctypes.c_void_p), "data type": (1, ctypes.c_int), "bool": (2, ctypes.c_bool),
    "int64": (3, ctypes.c_int64), "double": (5, ctypes.c_double), "pointer": (6, ctypes.c_void_p),
    "convolution mode": (7, ctypes.c_int), "heuristic": (8, ctypes.c_int), "nan": (10, ctypes.c_int),
    "numerical note": (11, ctypes.c_int), "pointwise mode": (14, ctypes.c_int), "descriptor": (15, ctypes.c_void_p),
    "behavior note": (19, ctypes.c_int), "resample mode": (21, ctypes.c_int), "padding mode": (22, ctypes.c_int),
    "char": (24, ctypes.c_char), "norm mode": (27, ctypes.c_int), "norm phase": (28, ctypes.c_int),
}  # fmt: skip
"""Name -> number and C type of an attribute's elements. Source: cudnnBackendAttributeType_t."""

EXECUTION_PLAN, VARIANT_PACK, DEVICE_PROPERTIES = 5, 16, 38
PLAN_HANDLE, PLAN_ENGINE_CONFIG, PLAN_WORKSPACE_BYTES, PLAN_JSON, PLAN_DEVICE = 400, 401, 402, 405, 407
PACK_UIDS, PACK_POINTERS, PACK_WORKSPACE = 1000, 1001, 1003
DEVICE_JSON = 2702


class CudnnError(Exception):
    """A call of cuDNN failed; `str(error)` is the call and cuDNN's own words, one line."""


class Library:
    """cuDNN, loaded; `version` is for example 92800."""

    def __init__(self, path: str) -> None:
        self._c = ctypes.CDLL(path)
        self._c.cudnnGetVersion.restype = ctypes.c_size_t
        self._c.cudnnGetErrorString.restype = ctypes.c_char_p
        self.version = int(self._c.cudnnGetVersion())

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status.

        Raises:
            CudnnError: the status is not success.
        """
        if status := getattr(self._c, name)(*arguments):
            said = self._c.cudnnGetErrorString(status).decode()
            raise CudnnError(one_line(f"{name}: {said} {self.last_message()}"))

    def last_message(self) -> str:
        """Returns what cuDNN last said about an error in this thread; it is then forgotten."""
        buffer = ctypes.create_string_buffer(MAX_MESSAGE_BYTES)
        self._c.cudnnGetLastErrorString(buffer, MAX_MESSAGE_BYTES)
        return buffer.value.decode("utf-8", "replace")


class Descriptor:
    """An opaque object of cuDNN's backend interface; it keeps alive what it refers to."""

    def __init__(self, library: Library, kind: int) -> None:
        self._library = library
        self._kept: list[Descriptor] = []
        pointer = ctypes.c_void_p()
        library.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(pointer))
        self.pointer = pointer.value or 0
        weakref.finalize(self, _release, library, "cudnnBackendDestroyDescriptor", self.pointer).atexit = False

    def set(self, attribute: int, kind: str, values: Any) -> "Descriptor":
        """Sets an attribute to one value, or to a list of them; returns the descriptor."""
        listed = list(values) if isinstance(values, list | tuple) else [values]
        number, c_type = ATTRIBUTE_TYPES[kind]
        if kind == "char":
            array: Any = ctypes.create_string_buffer(values)
            count = len(values) + 1
        elif kind == "descriptor":
            self._kept += listed
            array, count = (c_type * len(listed))(*(value.pointer for value in listed)), len(listed)
        else:
            array, count = (c_type * len(listed))(*listed), len(listed)
        self._library.call(
            "cudnnBackendSetAttribute", _p(self.pointer), attribute, number, ctypes.c_int64(count), array
        )
        return self

    def finalized(self) -> "Descriptor":
        """Checks the descriptor and makes it usable; returns it."""
        self._library.call("cudnnBackendFinalize", _p(self.pointer))
        return self

    def get(self, attribute: int, kind: str, most: int) -> list[Any]:
        """Returns at most `most` elements of an attribute."""
        number, c_type = ATTRIBUTE_TYPES[kind]
        array = (c_type * most)()
        return list(array[: self._fetch(attribute, number, most, array)])

    def get_descriptors(self, attribute: int, kind: int, most: int) -> "list[Descriptor]":
        """Returns at most `most` descriptors of an attribute."""
        made = [Descriptor(self._library, kind) for _ in range(most)]
        number, c_type = ATTRIBUTE_TYPES["descriptor"]
        array = (c_type * most)(*(descriptor.pointer for descriptor in made))
        return made[: self._fetch(attribute, number, most, array)]

    def get_text(self, attribute: int) -> bytes:
        """Returns an attribute that is a text."""
        number, _ = ATTRIBUTE_TYPES["char"]
        size = self._fetch(attribute, number, 0, None)
        buffer = ctypes.create_string_buffer(size)
        self._fetch(attribute, number, size, buffer)
        return buffer.value

    def _fetch(self, attribute: int, number: int, most: int, array: Any) -> int:
        count = ctypes.c_int64()
        self._library.call(
            "cudnnBackendGetAttribute",
            _p(self.pointer), attribute, number, ctypes.c_int64(most), ctypes.byref(count), array,
        )  # fmt: skip
        return min(count.value, most) if most else count.value


Pack = Descriptor
"""The memory of one execution of a plan; it may be used again."""


class LoadedPlan:
    """A loaded plan; `workspace_bytes` is what it needs besides its tensors."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.workspace_bytes = int(descriptor.get(PLAN_WORKSPACE_BYTES, "int64", 1)[0])


class Handle:
    """cuDNN on the current device: loads plans and queues them on a stream."""

    def __init__(self, library: Library) -> None:
        self._library = library
        pointer = ctypes.c_void_p()
        library.call("cudnnCreate", ctypes.byref(pointer))
        self._pointer = pointer.value or 0
        self._close = weakref.finalize(self, _release, library, "cudnnDestroy", self._pointer)
        self._close.atexit = False

    def set_stream(self, stream: int) -> None:
        """Makes `stream`, a CUstream, the one that plans are queued on."""
        self._library.call("cudnnSetStream", _p(self._pointer), _p(stream))

    def load(self, text: bytes) -> LoadedPlan:
        """Returns a plan from its text; the handle must outlive it."""
        descriptor = Descriptor(self._library, EXECUTION_PLAN)
        return LoadedPlan(descriptor.set(PLAN_HANDLE, "handle", self._pointer).set(PLAN_JSON, "char", text).finalized())

    def pack(self, uids: Sequence[int], pointers: Sequence[int], workspace: int) -> Pack:
        """Returns the memory for one execution: `pointers` are the addresses of the tensors with `uids`."""
        pack = Descriptor(self._library, VARIANT_PACK)
        pack.set(PACK_UIDS, "int64", list(uids)).set(PACK_POINTERS, "pointer", list(pointers))
        return pack.set(PACK_WORKSPACE, "pointer", workspace).finalized()

    def execute(self, plan: LoadedPlan, pack: Pack) -> None:
        """Queues a plan on the memory of a pack."""
        self._library.call("cudnnBackendExecute", _p(self._pointer), _p(plan.descriptor.pointer), _p(pack.pointer))

    def close(self) -> None:
        """Frees the handle; a second call does nothing."""
        self._close()


@cache
def cudnn_library() -> Library:
    """Returns the library, loaded.

    Raises:
        UnavailableError: it is not installed, or cannot be loaded.
    """
    path = installed_path()
    try:
        return Library(path or LIBRARY_NAME)
    except OSError as err:
        raise UnavailableError(f"cuDNN cannot be loaded: {err}", hint=HINT) from err


def installed_path() -> str:
    """Returns where NVIDIA's wheel put the library, or "" where there is none; nothing is loaded."""
    try:
        spec = find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        return ""
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    found = (Path(folder) / "lib" / LIBRARY_NAME for folder in folders)
    return next((str(path) for path in found if path.is_file()), "")


def installed_version() -> str:
    """Returns the version of NVIDIA's wheel, or "" where there is none."""
    for wheel in WHEELS:
        try:
            return version(wheel)
        except PackageNotFoundError:
            continue
    return ""


def _release(library: Library, name: str, pointer: int) -> None:
    """Frees an object from a finalizer, where no error can be raised to anyone."""
    with contextlib.suppress(CudnnError):
        library.call(name, _p(pointer))


def _p(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)
