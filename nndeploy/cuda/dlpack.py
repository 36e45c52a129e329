# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules, made with ctypes, so that other libraries can read device arrays without a copy.

Law: the exporting array lives exactly until the consumer calls the deleter, or the unused capsule is dropped.

Source: dlpack.h, DLManagedTensor (the unversioned struct); DLPack's Python specification.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT16 = (4, 16)
_NAME = b"dltensor"


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", _Deleter))

_exported: dict[int, tuple[DLManagedTensor, object, object]] = {}  # by address: the struct, its shape, its owner


def dlpack_capsule(
    owner: object, ptr: int, shape: Sequence[int], dtype: np.dtype[Any], device: tuple[int, int]
) -> object:
    """Returns a capsule named "dltensor" over dense row-major memory that `owner` keeps alive.

    Raises:
        BufferError: DLPack has no such dtype.
    """
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    tensor = DLTensor(ptr, DLDevice(*device), len(shape), _data_type(dtype), sizes, None, 0)
    managed = DLManagedTensor(tensor, None, _deleter)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, owner)
    return _new_capsule(address, _NAME, _destructor)


def _data_type(dtype: np.dtype[Any]) -> DLDataType:
    if dtype.name == "bfloat16":
        return DLDataType(*_BFLOAT16, 1)
    if dtype.kind not in _TYPE_CODES:
        raise BufferError(f"DLPack has no element type for {dtype.name}")
    return DLDataType(_TYPE_CODES[dtype.kind], dtype.itemsize * 8, 1)


def _delete(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


def _drop_unused(capsule: int) -> None:
    """Runs when a capsule goes; a consumer has renamed it, and then calls the deleter itself."""
    if _is_valid(capsule, _NAME):
        _exported.pop(_pointer_of(capsule, _NAME), None)


_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_deleter = _Deleter(_delete)  # both live as long as the process: C code keeps their addresses
_destructor = _Destructor(_drop_unused)
# Prototypes of our own: the functions of `ctypes.pythonapi` are shared, and others set their argument types.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
