# SPDX-License-Identifier: Apache-2.0
"""Which library builds for which GPU, and what is said where none does."""

from collections.abc import Callable

import pytest
from nndeploy_tensorrt import serving
from nndeploy_tensorrt.library import CLASSIC
from nndeploy_tensorrt.serving import Serving, serving_for

from nndeploy.target.target import Target

Box = Callable[..., Target]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def only(*flavours: str) -> None:
        monkeypatch.setattr(serving, "is_installed", lambda flavour: flavour in flavours)

    return only


def served(target: Target, *here: str) -> Serving:
    return serving_for(target, lambda: here)


@pytest.mark.parametrize("capability", ["7.5", "8.0", "8.6", "8.9", "12.0", "12.1"])
def test_rtx_builds_for_each_capability_that_it_names(
    with_gpu: Box, installed: Callable[..., None], capability: str
) -> None:
    installed("rtx")
    found = served(with_gpu(capability))
    assert (found.flavour, found.capabilities) == ("rtx", (capability,))
    assert found.requires == {"compute_capability": [capability]}


def test_gpu_of_a_later_generation_gets_the_portable_engine(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx")
    found = served(with_gpu("13.0"))
    assert (found.flavour, found.capabilities) == ("rtx", ())
    assert found.requires == {"compute_capability_min": "8.0"}


def test_box_with_two_kinds_of_gpu_gets_one_engine_for_both(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx")
    found = served(with_gpu("8.9", "7.5", "8.9"))
    assert found.capabilities == ("7.5", "8.9")
    assert found.requires == {"compute_capability": ["7.5", "8.9"]}


def test_gpu_that_nobody_serves_does_not_keep_the_other_from_its_engine(
    with_gpu: Box, installed: Callable[..., None]
) -> None:
    installed("rtx")
    assert served(with_gpu("9.0", "8.6")).capabilities == ("8.6",)


@pytest.mark.parametrize("capability", ["9.0", "10.0", "10.3"])
def test_data_centre_gpu_without_the_classic_library_says_what_is_missing(
    with_gpu: Box, installed: Callable[..., None], capability: str
) -> None:
    installed("rtx")
    found = served(with_gpu(capability), capability)
    assert (found.flavour, found.hint) == ("", CLASSIC.hint)
    assert found.reason == (
        f"TensorRT-RTX does not serve compute capability {capability}, and TensorRT is not installed"
    )


@pytest.mark.parametrize("here", [(), ("8.9",)])
def test_classic_library_is_no_cure_where_there_is_no_such_gpu(
    with_gpu: Box, installed: Callable[..., None], here: tuple[str, ...]
) -> None:
    installed("rtx")
    found = served(with_gpu("9.0"), *here)
    assert (found.flavour, found.hint) == ("", "")
    assert found.reason


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0"])
def test_data_centre_gpu_goes_to_the_classic_library_where_it_is_there(
    with_gpu: Box, installed: Callable[..., None], capability: str
) -> None:
    installed("rtx", "classic")
    found = served(with_gpu(capability), "8.9", capability)
    assert (found.flavour, found.capabilities) == ("classic", (capability,))


def test_classic_library_builds_only_on_such_a_gpu(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx", "classic")
    assert served(with_gpu("9.0"), "8.9").reason == (
        "TensorRT builds only on a GPU of compute capability 9.0, this machine has 8.9"
    )
    assert served(with_gpu("9.0")).reason.endswith("this machine has no GPU")


def test_other_gpus_stay_with_rtx_where_both_are_there(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx", "classic")
    assert served(with_gpu("8.9"), "8.9").flavour == "rtx"


def test_capability_that_rtx_leaves_out_goes_to_the_classic_library(
    with_gpu: Box, installed: Callable[..., None]
) -> None:
    installed("rtx", "classic")
    assert served(with_gpu("8.7"), "8.7").flavour == "classic"


def test_other_machines_than_x86_64_are_not_served_by_rtx(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx")
    assert served(with_gpu("8.9", arch="aarch64")).reason == (
        "TensorRT-RTX does not serve aarch64 machines, and TensorRT is not installed"
    )


def test_nothing_installed_says_what_to_install(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed()
    found = served(with_gpu("8.9"))
    assert (found.flavour, found.reason) == ("", "TensorRT-RTX is not installed")
    assert "nndeploy-toolchain[tensorrt-rtx]" in found.hint


def test_target_without_a_gpu_is_not_served(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx", "classic")
    assert served(with_gpu()).reason == "the target has no NVIDIA GPU"


def test_gpus_of_this_machine_are_not_looked_for_where_rtx_builds(
    with_gpu: Box, installed: Callable[..., None]
) -> None:
    installed("rtx")

    def asked() -> list[str]:
        pytest.fail("asked for the GPUs of this machine")

    serving_for(with_gpu("8.9"), asked)
