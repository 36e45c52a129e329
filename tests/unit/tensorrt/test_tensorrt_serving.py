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


RTX, BOTH = ("rtx",), ("rtx", "classic")


@pytest.mark.parametrize(("libraries", "gpus", "here", "flavour", "capabilities"), [
    *((RTX, (one,), (), "rtx", (one,)) for one in ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")),
    (RTX, ("13.0",), (), "rtx", ()), (RTX, ("8.9", "7.5", "8.9"), (), "rtx", ("7.5", "8.9")),
    (RTX, ("9.0", "8.6"), (), "rtx", ("8.6",)),
    *((BOTH, (one,), ("8.9", one), "classic", (one,)) for one in ("8.0", "9.0", "10.0")),
    (BOTH, ("8.9",), ("8.9",), "rtx", ("8.9",)),
    # RTX leaves it out
    (BOTH, ("8.7",), ("8.7",), "classic", ("8.7",)),
])  # fmt: skip
def test_library_and_engine_follow_from_the_gpus(
    with_gpu: Box, installed: Callable[..., None], libraries: tuple[str, ...], gpus: tuple[str, ...],
    here: tuple[str, ...], flavour: str, capabilities: tuple[str, ...],
) -> None:  # fmt: skip
    installed(*libraries)
    found = served(with_gpu(*gpus), *here)
    assert (found.flavour, found.capabilities) == (flavour, capabilities)
    if flavour == "rtx":
        portable = {"compute_capability_min": "8.0"}
        assert found.requires == ({"compute_capability": [*capabilities]} if capabilities else portable)


@pytest.mark.parametrize(
    ("libraries", "gpus", "here", "reason", "hint"),
    [
        *(
            (RTX, (one,), (one,), f"does not serve compute capability {one}, and TensorRT is not", CLASSIC.hint)
            for one in ("9.0", "10.0", "10.3")
        ),
        *((RTX, ("9.0",), here, "does not serve compute capability 9.0", "") for here in ((), ("8.9",))),
        (BOTH, ("9.0",), ("8.9",), "only on a GPU of compute capability 9.0, this machine has 8.9", ""),
        (BOTH, ("9.0",), (), "this machine has no GPU", ""),
        ((), ("8.9",), (), "TensorRT-RTX is not installed", "nndeploy-toolchain[tensorrt-rtx]"),
        (BOTH, (), (), "the target has no NVIDIA GPU", ""),
    ],
)
def test_what_nobody_serves_says_why_and_what_helps(
    with_gpu: Box, installed: Callable[..., None], libraries: tuple[str, ...], gpus: tuple[str, ...],
    here: tuple[str, ...], reason: str, hint: str,
) -> None:  # fmt: skip
    installed(*libraries)
    found = served(with_gpu(*gpus), *here)
    assert found.flavour == ""
    assert reason in found.reason
    assert hint in found.hint if hint else not found.hint


def test_other_machines_than_x86_64_are_not_served_by_rtx(with_gpu: Box, installed: Callable[..., None]) -> None:
    installed("rtx")
    assert served(with_gpu("8.9", arch="aarch64")).reason == (
        "TensorRT-RTX does not serve aarch64 machines, and TensorRT is not installed"
    )


def test_gpus_of_this_machine_are_not_looked_for_where_rtx_builds(
    with_gpu: Box, installed: Callable[..., None]
) -> None:
    installed("rtx")

    def asked() -> list[str]:
        pytest.fail("asked for the GPUs of this machine")

    serving_for(with_gpu("8.9"), asked)
