# SPDX-License-Identifier: Apache-2.0
"""A machine without a kernel library that it can use is told so in one line, with what to install."""

from pathlib import Path

import pytest
from nndeploy_kernels import loading
from nndeploy_native import kernel_library
from nndeploy_native.probe import probe

from nndeploy.errors import UnavailableError
from nndeploy.target.target import Target, host_target

HINT = "pip install nndeploy-kernels"
TOO_OLD = Target("old", "x86_64", ("sse2",))


def refusal() -> UnavailableError:
    with pytest.raises(UnavailableError) as caught:
        kernel_library.kernel_library("fp32")
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_library, "find_spec", lambda _name: None)


def test_missing_distribution_is_named(nowhere: None) -> None:
    err = refusal()
    assert (err.what, err.hint) == ("nndeploy-kernels is not installed", HINT)
    found = probe(host_target())
    assert (found.can_build, found.can_run, found.reason, found.hint) == (False, False, err.what, HINT)


def test_distribution_of_another_architecture_can_build_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    err = refusal()
    assert err.what == f"nndeploy-kernels has no library for this {host_target().arch} machine"
    found = probe(host_target())
    assert (found.can_build, found.can_run, found.reason, found.hint) == (True, False, err.what, HINT)


def test_processor_without_kernels_is_told_what_it_lacks_and_nothing_to_install() -> None:
    found = probe(TOO_OLD)
    assert (found.can_build, found.can_run, found.hint) == (False, False, "")
    assert found.reason.startswith("the target lacks cx16, ")


def test_distribution_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "API_VERSION", 99)
    err = refusal()
    assert (
        err.what
        == f"nndeploy-kernels speaks version 99 of its interface, this nndeploy version {kernel_library.API_VERSION}"
    )
    assert err.hint == "install matching versions"


def test_library_that_cannot_be_loaded_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in loading.LEVELS:
        (tmp_path / level.file_name).write_bytes(b"no library")
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    err = refusal()
    assert err.what.startswith("the kernel library cannot be loaded: ")
    assert err.hint == HINT


def test_interface_is_the_one_that_the_tree_has() -> None:
    assert kernel_library.API_VERSION == loading.API_VERSION
