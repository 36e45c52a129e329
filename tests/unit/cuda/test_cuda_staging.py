# SPDX-License-Identifier: Apache-2.0
"""Page-locked buffers: used again when their copy is done, never before, and never without bound."""

import numpy as np
import pytest

from nndeploy.cuda import device
from nndeploy.cuda.staging import SMALLEST_BYTES
from nndeploy.testing.host_driver import HostDriver

VALUES = np.arange(12, dtype=np.float32)


def test_a_buffer_is_used_again_when_its_copy_is_done(driver: HostDriver) -> None:
    for _ in range(5):
        device(0).to_device(VALUES).numpy()
    assert driver.live_pinned == 1


def test_a_buffer_whose_copy_is_pending_is_left_alone(driver: HostDriver) -> None:
    driver.finish_events = False
    first = device(0).to_device(VALUES)
    second = device(0).to_device(VALUES + 1)
    assert driver.live_pinned == 2
    driver.finish_events = True
    third = device(0).to_device(VALUES + 2)
    assert driver.live_pinned == 2
    for shift, array in enumerate((first, second, third)):
        np.testing.assert_array_equal(array.numpy(), VALUES + shift)


def test_a_full_pool_waits_for_its_oldest_copy(driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nndeploy.cuda.staging.KEPT_BYTES", 2 * SMALLEST_BYTES)
    driver.finish_events = False
    arrays = [device(0).to_device(VALUES + shift) for shift in range(6)]
    assert driver.live_pinned == 2
    for shift, array in enumerate(arrays):
        np.testing.assert_array_equal(array.numpy(), VALUES + shift)


def test_idle_buffers_make_room_for_a_larger_one(driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nndeploy.cuda.staging.KEPT_BYTES", 2 * SMALLEST_BYTES)
    device(0).to_device(VALUES)
    large = np.zeros(2 * SMALLEST_BYTES, np.uint8)
    np.testing.assert_array_equal(device(0).to_device(large).numpy(), large)
    assert driver.live_pinned == 1
