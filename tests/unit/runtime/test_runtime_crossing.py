# SPDX-License-Identifier: Apache-2.0
"""Which submodel copies what, so that each value comes to a device once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.bundle.manifest import Submodel
from nndeploy.cuda import DeviceArray, device
from nndeploy.cuda.current_driver import injected_driver
from nndeploy.runtime.crossing import Crossing, crossings
from nndeploy.testing.host_driver import Copy, HostDriver, HostGpu


def submodel(name: str, inputs: str, outputs: str) -> Submodel:
    return Submodel(name, tuple(inputs), tuple(outputs), ())


def test_nothing_crosses_on_one_device_but_what_several_read_of_the_host() -> None:
    line = [submodel("a", "x", "r"), submodel("b", "r", "s")]
    assert crossings(line, ["cpu", "cpu"]) == [Crossing(), Crossing()]
    assert crossings(line, ["cuda:0", "cuda:0"]) == [Crossing("cuda:0"), Crossing("cuda:0")]
    both = [submodel("a", "x", "r"), submodel("b", "xr", "s")]
    first, second = crossings(both, ["cuda:0", "cuda:0"])
    assert (first.moved, first.kept, second.taken) == (("x",), {"x": "x\0cuda:0"}, {"x": "x\0cuda:0"})


def test_a_value_that_two_submodels_of_another_gpu_read_is_moved_by_the_first() -> None:
    chain = [submodel("a", "x", "r"), submodel("b", "r", "s"), submodel("c", "rs", "y")]
    _, first, second = crossings(chain, ["cuda:0", "cuda:1", "cuda:1"])
    assert (first.moved, second.moved) == (("r",), ())
    assert first.kept == second.taken == {"r": "r\0cuda:1"}


def test_submodels_of_the_cpu_that_may_run_side_by_side_do_not_wait_for_a_copy() -> None:
    chain = [submodel("a", "x", "r"), submodel("b", "r", "s"), submodel("c", "r", "t"), submodel("d", "rst", "y")]
    _, b, c, d = crossings(chain, ["cuda:0", "cpu", "cpu", "cpu"])
    assert (b.moved, c.moved, d.moved) == (("r",), ("r",), ())
    assert d.taken == b.kept == {"r": "r\0cpu"}


@given(st.data())
def test_each_submodel_gets_its_inputs_where_it_can_read_them(data: st.DataObject) -> None:
    """Values are numbers; those of a GPU are arrays there, and every copy is counted."""
    devices = data.draw(st.lists(st.sampled_from(["cpu", "cuda:0", "cuda:1"]), min_size=1, max_size=6))
    names = ["x"]
    chain = []
    for i in range(len(devices)):
        chain.append(Submodel(f"s{i}", tuple(data.draw(st.sets(st.sampled_from(names), min_size=1))), (f"v{i}",), ()))
        names.append(f"v{i}")
    driver = HostDriver((HostGpu(), HostGpu()))
    with injected_driver(driver):
        values: dict[str, object] = {"x": np.float32([0])}
        for one, place, way in zip(chain, devices, crossings(chain, devices), strict=True):
            found = way.inputs(values, one.inputs)
            assert list(found) == list(one.inputs)
            for name, value in found.items():
                assert not isinstance(value, DeviceArray) or value.device.name == place
                number = value.numpy() if isinstance(value, DeviceArray) else value
                assert number == np.float32(names.index(name))
            values |= {copy: found[name] for name, copy in way.kept.items()}
            result = np.float32([names.index(one.outputs[0])])
            values[one.outputs[0]] = result if place == "cpu" else device(int(place[5:])).to_device(result)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_copy_that_is_kept_for_others_on_a_gpu_is_there(is_kept: bool) -> None:
    driver = HostDriver((HostGpu(), HostGpu()))
    with injected_driver(driver):
        made = device(0).to_device(np.float32([1, 2]))
        driver.copies.clear()
        way = Crossing("cuda:1", ("r",), {"r": "copy"} if is_kept else {})
        value = way.inputs({"r": made}, ["r"])["r"]
        there = [Copy("to device", 1, 8)] if is_kept else []
        assert driver.copies == [Copy("to host", 0, 8), *there]
        assert isinstance(value, DeviceArray) == is_kept
