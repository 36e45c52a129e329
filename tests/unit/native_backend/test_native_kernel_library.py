# SPDX-License-Identifier: Apache-2.0
"""A machine without a kernel library that it can use is told so in one line, with what to install."""

from pathlib import Path

import pytest
from nndeploy_kernels import loading
from nndeploy_native import kernel_library
from nndeploy_native.probe import probe

from nndeploy.errors import UnavailableError
from nndeploy.target.target import Target, host_target
from nndeploy.version import WHEEL_HINT

TOO_OLD = Target("old", "x86_64", ("sse2",))


def refusal() -> UnavailableError:
    with pytest.raises(UnavailableError) as caught:
        kernel_library.kernel_library("fp32")
    assert "\n" not in str(caught.value)
    return caught.value


def test_wheel_of_another_architecture_can_build_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    err = refusal()
    assert host_target().arch in err.what
    found = probe(host_target())
    assert (found.can_build, found.can_run, found.reason, found.hint) == (True, False, err.what, WHEEL_HINT)


def test_processor_without_kernels_is_told_what_it_lacks_and_nothing_to_install() -> None:
    found = probe(TOO_OLD)
    assert (found.can_build, found.can_run, found.hint) == (False, False, "")
    assert found.reason.startswith("the target lacks cx16, ")


def test_library_that_cannot_be_loaded_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in loading.LEVELS:
        (tmp_path / level.file_name).write_bytes(b"no library")
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    err = refusal()
    assert err.what.startswith("the kernel library cannot be loaded: ")
    assert err.hint == WHEEL_HINT
