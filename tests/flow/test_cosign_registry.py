# SPDX-License-Identifier: Apache-2.0
"""Signatures in a registry against programs of others: skopeo finds, carries and writes them, openssl checks and signs.

Debian builds skopeo without sigstore's library, so it reads and writes the layout and does no mathematics; these are
openssl's here, and skopeo's own where it has them.
"""

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from debian_registry import running
from tests_flow_bundles import write_double

from nndeploy.errors import PolicyError
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push
from nndeploy.trust.signers import FileSigner, new_key

pytestmark = pytest.mark.slow

HEAD = b"\x00sigstore-json\n"
"""With which skopeo begins a file of a signature in a folder."""
ANYTHING: dict[str, Any] = {"default": [{"type": "insecureAcceptAnything"}]}


@dataclass(frozen=True)
class Skopeo:
    """skopeo, with a folder for its settings."""

    program: str
    folder: Path

    def copied(self, source: str, destination: str, policy: dict[str, Any] = ANYTHING) -> str:
        """Copies an artifact with its signatures; returns why that was refused, "" where it was not."""
        (self.folder / "policy.json").write_text(json.dumps(policy), encoding="utf-8")
        (self.folder / "registries.d").mkdir(exist_ok=True)
        with_signatures = "default-docker:\n  use-sigstore-attachments: true\n"
        (self.folder / "registries.d" / "default.yaml").write_text(with_signatures, encoding="utf-8")
        settings = ["--policy", self.folder / "policy.json", "--registries.d", self.folder / "registries.d"]
        plain = [f"--{side}-tls-verify=false" for side in ("src", "dest")]
        done = subprocess.run(
            [self.program, *settings, "copy", "--preserve-digests", *plain, source, destination],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.stderr if done.returncode else ""


@dataclass(frozen=True)
class Repositories:
    """A registry that runs; a place in it is a path, and a tag."""

    port: int

    def oci(self, place: str) -> str:
        return f"oci://127.0.0.1:{self.port}/{place}"

    def docker(self, place: str) -> str:
        return f"docker://127.0.0.1:{self.port}/{place}"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repositories]:
    with running(tmp_path_factory.mktemp("registry")) as made:
        yield Repositories(made.port)


@pytest.fixture
def skopeo(tmp_path: Path) -> Skopeo:
    return Skopeo(program("skopeo"), tmp_path)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    write_double(tmp_path / "m.nnd")
    return tmp_path / "m.nnd"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def openssl(*words: object, given: bytes = b"") -> bytes:
    """Returns what openssl writes; it has to succeed."""
    done = subprocess.run([program("openssl"), *map(str, words)], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def made_key(folder: Path, name: str) -> tuple[FileSigner, Path]:
    """Makes a pair of keys; returns who signs, and the file of the public key."""
    signer = new_key(folder / f"{name}.key")
    (folder / f"{name}.pub").write_text(signer.public.pem, encoding="ascii")
    return signer, folder / f"{name}.pub"


def test_skopeo_finds_what_push_signed_and_openssl_agrees(registry, bundle, tmp_path, skopeo) -> None:
    signer, public = made_key(tmp_path, "farm")
    place = "found/faces:1"
    pushed = push(bundle, registry.oci(place), signers=[signer])
    assert skopeo.copied(registry.docker(place), f"dir:{tmp_path / 'copy'}") == ""
    manifest = (tmp_path / "copy" / "manifest.json").read_bytes()
    assert f"sha256:{hashlib.sha256(manifest).hexdigest()}" == pushed.reference.digest
    text = (tmp_path / "copy" / "signature-1").read_bytes()
    assert text.startswith(HEAD)
    found = json.loads(text.removeprefix(HEAD))
    assert found["mimeType"] == "application/vnd.dev.cosign.simplesigning.v1+json"
    payload = base64.b64decode(found["payload"])
    assert json.loads(payload)["critical"]["image"] == {"docker-manifest-digest": pushed.reference.digest}
    (tmp_path / "payload").write_bytes(payload)
    signature = base64.b64decode(found["annotations"]["dev.cosignproject.cosign/signature"])
    (tmp_path / "signature").write_bytes(signature)
    openssl(
        "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin",
        "-in", tmp_path / "payload", "-sigfile", tmp_path / "signature",
    )  # fmt: skip


def test_a_mirror_that_skopeo_makes_has_the_signatures_of_both_places(registry, bundle, tmp_path, skopeo) -> None:
    (here, here_public), (there, there_public) = made_key(tmp_path, "here"), made_key(tmp_path, "there")
    push(bundle, registry.oci("origin/faces:1"), signers=[here])
    push(bundle, registry.oci("mirror/faces:1"), signers=[there])
    with pytest.raises(PolicyError, match="not of this key"):
        pull(registry.oci("mirror/faces:1"), tmp_path / "out.nnd", signed_by=here_public)
    assert skopeo.copied(registry.docker("origin/faces:1"), registry.docker("mirror/faces:1")) == ""
    for public in (here_public, there_public):
        pull(registry.oci("mirror/faces:1"), tmp_path / "out.nnd", signed_by=public)
        assert (tmp_path / "out.nnd").read_bytes() == bundle.read_bytes()
        (tmp_path / "out.nnd").unlink()


def test_pull_takes_what_openssl_signed_and_skopeo_put_there(registry, bundle, tmp_path, skopeo) -> None:
    """The key is of the kind that cosign makes, the text is the one that it signs."""
    openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", tmp_path / "cosign.key")
    openssl("ec", "-in", tmp_path / "cosign.key", "-pubout", "-out", tmp_path / "cosign.pub")
    place, out = "theirs/faces:1", tmp_path / "out.nnd"
    pushed = push(bundle, registry.oci(place))
    assert skopeo.copied(registry.docker(place), f"dir:{tmp_path / 'copy'}") == ""
    payload = (
        '{"critical":{"identity":{"docker-reference":"registry.example/vision/faces"},"image":{"docker-manifest-digest"'
        f':"{pushed.reference.digest}"}},"type":"cosign container image signature"}},"optional":null}}'
    ).encode()

    def put(signed: bytes, signature: bytes) -> None:
        file = {
            "mimeType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "payload": base64.b64encode(signed).decode(),
            "annotations": {"dev.cosignproject.cosign/signature": base64.b64encode(signature).decode()},
        }
        (tmp_path / "copy" / "signature-1").write_bytes(HEAD + json.dumps(file).encode())
        assert skopeo.copied(f"dir:{tmp_path / 'copy'}", registry.docker(place)) == ""

    signature = openssl("dgst", "-sha256", "-sign", tmp_path / "cosign.key", given=payload)
    put(payload.replace(b"vision", b"others"), signature)
    with pytest.raises(PolicyError, match="not of this key"):
        pull(registry.oci(place), out, signed_by=tmp_path / "cosign.pub")
    put(payload, signature)
    pull(registry.oci(place), out, signed_by=tmp_path / "cosign.pub")
    assert out.read_bytes() == bundle.read_bytes()
