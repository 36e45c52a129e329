# SPDX-License-Identifier: Apache-2.0
"""References: the whole grammar of registries, and nothing that leads elsewhere."""

import pytest

from nndeploy.errors import UsageError
from nndeploy.registry.reference import Reference, is_loopback, reference_from_text

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(("text", "parts"), [
    ("oci://registry.example/vision/faces:1.4", ("registry.example", "vision/faces", "1.4", "")),
    ("oci://localhost:5000/faces:v1_2-x", ("localhost:5000", "faces", "v1_2-x", "")),
    (f"oci://10.0.0.7:443/a/b/c@{DIGEST}", ("10.0.0.7:443", "a/b/c", "", DIGEST)),
    (f"oci://[::1]:5000/a__b.c-d:latest@{DIGEST}", ("[::1]:5000", "a__b.c-d", "latest", DIGEST)),
    ("oci://docker.io/team/faces:1", ("docker.io", "team/faces", "1", "")),
])  # fmt: skip
def test_a_reference_is_what_it_says(text: str, parts: tuple[str, str, str, str]) -> None:
    found = reference_from_text(text)
    assert found == Reference(*parts)
    assert str(found) == text
    assert reference_from_text(str(found)) == found


@pytest.mark.parametrize("text", [
    "", "faces:1", "docker://h/r:1", "oci://", "oci://h", "oci://h/", "oci://h/r", "oci://h/:1", "oci://h/r:",
    "oci:///r:1", "oci://h/R:1", "oci://h/r/:1", "oci://h//r:1", "oci://h/../r:1", "oci://h/r..s:1", "oci://h/.r:1",
    "oci://h/r:.1", "oci://h/r:1/2", "oci://h/r:" + "x" * 129, "oci://h/" + "r" * 256 + ":1", "oci://h:0/r:1",
    "oci://h:99999/r:1", "oci://h:x/r:1", "oci://h?x/r:1", "oci://h/r?x:1", "oci://h/r#x:1", "oci://h/r:1#x",
    "oci://h/r:1@", "oci://h/r:1@sha256:0", "oci://h/r@sha512:" + "0" * 128, f"oci://h/r@{DIGEST.upper()}",
    f"oci://h/r:1@{DIGEST}x", "oci://h\n/r:1", "oci://h/r:1\n", "oci://h/r%2f:1", "oci://-h/r:1", "oci://h../r:1",
    "oci://" + "h" * 2000 + "/r:1", "OCI://h/r:1", "oci://h\u00e9/r:1",
])  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        reference_from_text(text)


def test_a_password_in_a_reference_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="--password-stdin") as caught:
        reference_from_text("oci://farm:hidden-word@registry.example/faces:1")
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("registry", ["localhost", "LOCALHOST:5000", "127.0.0.1:5000", "127.9.9.9", "[::1]:5000"])
def test_this_machine_is_known_by_its_names(registry: str) -> None:
    assert is_loopback(registry)


@pytest.mark.parametrize("registry", [
    "localhost.example", "127.0.0.1.example", "10.0.0.1", "[::2]", "0.0.0.0:5000", "xlocalhost", "2130706433", "127.1",
])  # fmt: skip
def test_other_machines_are_not_this_one(registry: str) -> None:
    assert not is_loopback(registry)


def test_docker_s_registry_answers_elsewhere() -> None:
    assert reference_from_text("oci://docker.io/team/faces:1").address == "registry-1.docker.io"
