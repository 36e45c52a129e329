# SPDX-License-Identifier: Apache-2.0
"""What is pushed comes back byte for byte, and only what is not there already travels."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from registry_server import RegistryServer, digest_of
from weighty_bundles import QUICK, write_weights

from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import write_bundle
from nndeploy.errors import BundleError, MissingInputError, UsageError
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push

GOLDEN = sorted((Path(__file__).resolve().parents[2] / "golden").glob("*.nnd"))


def weights(path: Path, number: int) -> str:
    with zipfile.ZipFile(path) as archive:
        return digest_of(archive.read(f"weights/{number}.bin"))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_format_comes_back_byte_for_byte(path: Path, registry: RegistryServer, box: Path) -> None:
    pushed = push(path, registry.reference(), options=QUICK)
    pulled = pull(registry.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == path.read_bytes()
    assert names_in(box) == ["m.nnd"]
    assert pulled.reference == pushed.reference
    assert pulled.sha256 == pushed.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (pulled.size_bytes, pulled.num_members) == (path.stat().st_size, pushed.num_members)
    assert (pulled.fetched_bytes, pushed.present_bytes) == (pushed.sent_bytes, 0)


def test_the_artifact_is_what_any_client_of_registries_expects(pushed: RegistryServer, bundle: Path) -> None:
    manifest = json.loads(pushed.manifests["1"])
    assert manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert manifest["artifactType"] == "application/vnd.nndeploy.bundle.v1"
    assert pushed.blobs[manifest["config"]["digest"]] == b"{}"
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        assert [layer["annotations"]["org.opencontainers.image.title"] for layer in manifest["layers"]] == names
        for name, layer in zip(names, manifest["layers"], strict=True):
            assert pushed.blobs[layer["digest"]] == archive.read(name)
            assert len(archive.read(name)) == layer["size"]


def test_the_same_bundle_has_the_same_digest_wherever_it_is_pushed(pushed, registry, bundle) -> None:
    again = push(bundle, registry.reference("again"), options=QUICK)
    assert registry.manifests["again"] == registry.manifests["1"]
    assert again.reference.digest == digest_of(registry.manifests["1"])
    assert (again.sent_bytes, again.present_bytes) == (0, sum(map(len, registry.blobs.values())) - len(b"{}"))
    assert [path for path in registry.paths("PUT") if "upload" in path] == []


def test_only_what_changed_is_sent_and_fetched(pushed: RegistryServer, bundle: Path, box: Path) -> None:
    pull(pushed.reference(), box / "m.nnd", options=QUICK)
    new = write_weights(bundle, (1, 20, 3))
    sent = push(bundle, pushed.reference("2"), options=QUICK)
    pushed.asked.clear()
    pulled = pull(pushed.reference("2"), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == new
    assert weights(bundle, 1) in pushed.fetched
    assert len(pushed.fetched) == 2  # the weights and manifest.json
    assert 300_000 < sent.sent_bytes == pulled.fetched_bytes < 305_000
    assert pulled.local_bytes == sent.present_bytes > 600_000


def test_members_are_taken_from_bundles_that_are_named(pushed: RegistryServer, bundle: Path, box: Path) -> None:
    write_weights(box / "a.nnd", (1, 70, 80), plan=b"other")
    write_weights(box / "b.nnd", (90, 3, 2), plan=b"another")  # under other names
    pulled = pull(pushed.reference(), box / "m.nnd", have=[box / "a.nnd", box / "b.nnd"], options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert pulled.fetched_bytes < 5_000
    assert not {weights(bundle, number) for number in range(3)} & set(pushed.fetched)


def test_a_member_that_is_damaged_here_is_fetched(pushed: RegistryServer, bundle: Path, box: Path) -> None:
    old = bytearray(bundle.read_bytes())
    with zipfile.ZipFile(bundle) as archive:
        place = old.index(archive.read("weights/1.bin"))
    old[place + 1000] ^= 1
    (box / "old.nnd").write_bytes(old)
    pull(pushed.reference(), box / "m.nnd", have=[box / "old.nnd"], options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    assert pushed.fetched == [weights(bundle, 1)]


def test_what_is_at_the_output_need_not_be_a_bundle_but_what_is_named_must_be(pushed, bundle, box) -> None:
    (box / "m.nnd").write_bytes(b"something else")
    with pytest.raises(BundleError):
        pull(pushed.reference(), box / "n.nnd", have=[box / "m.nnd"], options=QUICK)
    with pytest.raises(MissingInputError):
        pull(pushed.reference(), box / "n.nnd", have=[box / "none.nnd"], options=QUICK)
    assert names_in(box) == ["m.nnd"]
    pull(pushed.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()


def test_equal_members_and_empty_ones_travel_once(registry: RegistryServer, box: Path) -> None:
    whole = write_weights(box / "twins.nnd", (1, 1, 1), plan=b"")
    sent = push(box / "twins.nnd", registry.reference(), options=QUICK)
    pulled = pull(registry.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == whole
    assert 300_000 < sent.sent_bytes == pulled.fetched_bytes < 305_000
    assert sent.present_bytes == 0
    assert digest_of(b"") not in registry.fetched


def test_of_large_weights_only_the_blocks_that_changed_travel(registry, bundle, box) -> None:
    old = bytearray(write_weights(bundle, (1,), size=(20 << 20) + 5))
    push(bundle, registry.reference(), options=QUICK)
    pull(registry.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == old
    with open_bundle(bundle) as opened:
        members = {name: bytearray(opened.member(name)) for name in opened.manifest.members if name != "report.json"}
        members["weights/0.bin"][9 << 20] ^= 1
        write_bundle(box / "new.nnd", opened.manifest, members, {"model": "faces"})
    sent = push(box / "new.nnd", registry.reference("2"), options=QUICK)
    registry.asked.clear()
    pulled = pull(registry.reference("2"), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == (box / "new.nnd").read_bytes()
    assert 4 << 20 < sent.sent_bytes == pulled.fetched_bytes < (4 << 20) + 10_000
    assert 16 << 20 < pulled.local_bytes < 17 << 20
    assert len(registry.fetched) == 2  # a block and manifest.json


def test_a_signature_travels_as_the_member_that_it_is(registry: RegistryServer, bundle: Path, box: Path) -> None:
    from nndeploy.bundle.container import encode_container

    with open_bundle(bundle) as opened, zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        assert opened.manifest.model_name == "faces"
    (box / "signed.nnd").write_bytes(b"".join(encode_container({**members, "signature": b"signed by the farm"})))
    push(box / "signed.nnd", registry.reference(), options=QUICK)
    pull(registry.reference(), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == (box / "signed.nnd").read_bytes()


def test_a_digest_names_a_bundle_for_good(pushed: RegistryServer, bundle: Path, box: Path) -> None:
    digest, old = digest_of(pushed.manifests["1"]), bundle.read_bytes()
    write_weights(bundle, (7, 8, 9))
    push(bundle, pushed.reference("1"), options=QUICK)
    for reference in (pushed.reference("1", digest), pushed.reference("", digest)):
        pull(reference, box / "m.nnd", options=QUICK)
        assert (box / "m.nnd").read_bytes() == old
    pull(pushed.reference("1"), box / "m.nnd", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()


def test_a_damaged_bundle_is_not_pushed(registry: RegistryServer, bundle: Path) -> None:
    data = bytearray(bundle.read_bytes())
    data[200_000] ^= 1
    bundle.write_bytes(data)
    with pytest.raises(BundleError, match="damaged"):
        push(bundle, registry.reference(), options=QUICK)
    assert registry.asked == []


@pytest.mark.parametrize("reference", ["oci://h/r", "oci://h/r@sha256:" + "a" * 64, "oci://h/r:1@sha256:" + "a" * 64])
def test_a_bundle_is_pushed_under_a_tag_alone(bundle: Path, reference: str) -> None:
    with pytest.raises(UsageError, match="tag"):
        push(bundle, reference, options=QUICK)
