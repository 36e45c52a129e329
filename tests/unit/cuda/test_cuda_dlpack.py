# SPDX-License-Identifier: Apache-2.0
"""Device arrays as DLPack capsules: what a consumer reads in them, and how long the bytes live."""

import ctypes
import gc

import ml_dtypes
import numpy as np
import pytest

from nndeploy.cuda import DeviceArray, device
from nndeploy.cuda.dlpack import DLManagedTensor
from nndeploy.testing.host_driver import HostDriver

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
USED_NAME = b"used_dltensor"  # a capsule keeps the address of its name


def managed(capsule: object) -> DLManagedTensor:
    return DLManagedTensor.from_address(_pointer(capsule, b"dltensor"))


def test_a_consumer_sees_address_shape_type_and_device(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    capsule = array.__dlpack__()
    tensor = managed(capsule).dl_tensor
    assert (tensor.data, tensor.byte_offset, tensor.ndim) == (array.ptr, 0, 2)
    assert [tensor.shape[0], tensor.shape[1]] == [2, 3]
    assert not tensor.strides
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (2, 32, 1)
    assert (tensor.device.device_type, tensor.device.device_id) == array.__dlpack_device__() == (2, 0)


@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [("int64", 0, 64), ("uint8", 1, 8), ("float16", 2, 16), ("bfloat16", 4, 16), ("complex64", 5, 64), ("bool", 6, 8)],
)
def test_element_types_have_their_codes(driver: HostDriver, dtype: str, code: int, bits: int) -> None:
    capsule = device(0).empty((1,), dtype).__dlpack__()
    found = managed(capsule).dl_tensor.dtype
    assert (found.code, found.bits) == (code, bits)


def test_an_element_type_that_dlpack_lacks_is_refused(driver: HostDriver) -> None:
    with pytest.raises(BufferError, match="DLPack has no element type for float8_e4m3fn"):
        device(0).to_device(np.zeros(1, ml_dtypes.float8_e4m3fn)).__dlpack__()


def test_the_bytes_live_until_the_consumer_calls_the_deleter(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    capsule = array.__dlpack__()
    tensor = managed(capsule)
    _rename(capsule, USED_NAME)
    del array, capsule
    gc.collect()
    assert driver.live_bytes == VALUES.nbytes
    tensor.deleter(ctypes.byref(tensor))
    gc.collect()
    assert driver.live_bytes == 0


def test_an_unused_capsule_frees_the_bytes_when_it_is_dropped(driver: HostDriver) -> None:
    capsule = device(0).to_device(VALUES).__dlpack__()
    gc.collect()
    assert driver.live_bytes == VALUES.nbytes
    del capsule
    gc.collect()
    assert driver.live_bytes == 0


def test_the_values_are_there_before_a_consumer_reads_unless_it_says_it_waits_itself(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    before = driver.num_synchronized
    array.__dlpack__(stream=-1)
    assert driver.num_synchronized == before
    array.__dlpack__(stream=1, max_version=(1, 0))
    assert driver.num_synchronized == before + 1


@pytest.mark.parametrize("wish", [{"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (2, 1)}])
def test_a_copy_or_another_device_is_refused(driver: HostDriver, wish: dict[str, object]) -> None:
    array: DeviceArray = device(0).to_device(VALUES)
    with pytest.raises(BufferError, match="can only be exchanged where it is"):
        array.__dlpack__(**wish)  # type: ignore[arg-type]
