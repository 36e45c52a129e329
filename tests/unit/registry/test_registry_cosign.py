# SPDX-License-Identifier: Apache-2.0
"""Signatures as cosign puts them: what push adds, and that pull takes nothing that a key did not sign."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from registry_server import MANIFEST, Asked, Handler, RegistryServer, digest_of
from weighty_bundles import QUICK, write_weights

from nndeploy.cli.main import run_command
from nndeploy.errors import DataError, MissingInputError, PolicyError, UnavailableError
from nndeploy.registry.cosign import MAX_SIGNATURES, SIGNATURE
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push
from nndeploy.registry.simple_signing import MAX_PAYLOAD_BYTES, PAYLOAD_TYPE
from nndeploy.trust.signers import CommandSigner, FileSigner, new_key
from nndeploy.trust.verifying_key import read_verifying_key

Text = dict[str, Any]


@dataclass
class Key:
    """A private key and the file of its public one."""

    signer: FileSigner
    public: Path


def made_key(folder: Path, name: str) -> Key:
    signer = new_key(folder / f"{name}.key")
    (folder / f"{name}.pub").write_text(signer.public.pem, encoding="ascii")
    return Key(signer, folder / f"{name}.pub")


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return made_key(tmp_path, "farm")


@pytest.fixture
def signed(registry: RegistryServer, bundle: Path, key: Key) -> RegistryServer:
    """A registry that holds the bundle as 1, signed by the key."""
    push(bundle, registry.reference(), signers=[key.signer], options=QUICK)
    registry.asked.clear()
    return registry


def tag_of(registry: RegistryServer) -> str:
    return digest_of(registry.manifests["1"]).replace(":", "-") + ".sig"


def put(registry: RegistryServer, payload: bytes, signature: bytes, **changes: Any) -> Text:
    """Puts a payload there, and returns the layer that names it."""
    registry.blobs[digest_of(payload)] = payload
    annotations = {SIGNATURE: base64.b64encode(signature).decode()}
    layer = {"mediaType": PAYLOAD_TYPE, "digest": digest_of(payload), "size": len(payload), "annotations": annotations}
    return layer | changes


def put_layers(registry: RegistryServer, *layers: object) -> None:
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": {},
        "layers": list(layers),
    }  # fmt: skip
    registry.manifests[tag_of(registry)] = json.dumps(manifest).encode()


def payload_about(registry: RegistryServer) -> Text:
    """Returns what cosign signs of the bundle; its own text says the repository alone."""
    return {
        "critical": {
            "identity": {"docker-reference": "elsewhere.example/vision/faces"},
            "image": {"docker-manifest-digest": digest_of(registry.manifests["1"])},
            "type": "cosign container image signature",
        },
        "optional": None,
    }


def refused(registry: RegistryServer, box: Path, key: Key) -> str:
    """Returns the message of a pull that asks for a signature of the key, and brings nothing."""
    with pytest.raises(PolicyError) as caught:
        pull(registry.reference(), box / "m.nnd", signed_by=key.public, options=QUICK)
    assert list(box.iterdir()) == []
    members = {layer["digest"] for layer in json.loads(registry.manifests["1"])["layers"]}
    assert not members & set(registry.fetched)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_a_key_signed_is_pulled_by_it(signed: RegistryServer, bundle: Path, box: Path, key: Key) -> None:
    pulled = pull(signed.reference(), box / "m.nnd", signed_by=key.public, options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    by_digest = signed.reference("", pulled.reference.digest)
    pull(by_digest, box / "n.nnd", signed_by=key.public, options=QUICK)
    assert (box / "n.nnd").read_bytes() == bundle.read_bytes()


def test_another_key_no_signature_and_another_bundle_are_refused_before_any_member_comes(
    signed, tmp_path, box, key
) -> None:
    assert "a signature is not of this key" in refused(signed, box, made_key(tmp_path, "other"))
    write_weights(tmp_path / "other.nnd", (9,))
    push(tmp_path / "other.nnd", signed.reference(), options=QUICK)
    signed.asked.clear()
    assert "no signature" in refused(signed, box, key)


def test_the_layout_is_that_of_the_specification(signed: RegistryServer, key: Key) -> None:
    digest = digest_of(signed.manifests["1"])
    manifest = json.loads(signed.manifests[f"sha256-{digest.removeprefix('sha256:')}.sig"])
    [layer] = manifest["layers"]
    assert layer["mediaType"] == "application/vnd.dev.cosign.simplesigning.v1+json"
    payload = signed.blobs[layer["digest"]]
    assert layer["size"] == len(payload)
    assert json.loads(payload)["critical"] == {
        "identity": {"docker-reference": f"127.0.0.1:{signed.port}/team/faces:1"},
        "image": {"docker-manifest-digest": digest},
        "type": "cosign container image signature",
    }
    signature = base64.b64decode(layer["annotations"]["dev.cosignproject.cosign/signature"])
    assert key.signer.public.is_signature(signature, payload)
    config = signed.blobs[manifest["config"]["digest"]]
    assert json.loads(config)["rootfs"]["diff_ids"] == [layer["digest"]]


def test_signatures_add_up_and_none_is_added_twice(signed, bundle, box, tmp_path, key) -> None:
    theirs = put(signed, b"{}", b"theirs", annotations={SIGNATURE: "", "dev.sigstore.cosign/bundle": "{}"})
    [ours] = json.loads(signed.manifests[tag_of(signed)])["layers"]
    put_layers(signed, theirs, ours)
    before = signed.manifests[tag_of(signed)]
    push(bundle, signed.reference(), signers=[key.signer, key.signer], options=QUICK)
    assert signed.manifests[tag_of(signed)] == before
    other = made_key(tmp_path, "other")
    push(bundle, signed.reference(), signers=[other.signer], options=QUICK)
    manifest = json.loads(signed.manifests[tag_of(signed)])
    assert manifest["layers"][:2] == [theirs, ours]
    assert len(manifest["layers"]) == 3
    config = json.loads(signed.blobs[manifest["config"]["digest"]])
    assert config["rootfs"]["diff_ids"] == [one["digest"] for one in manifest["layers"]]
    for one in (key, other):
        pull(signed.reference(), box / "m.nnd", signed_by=one.public, options=QUICK)


def test_there_is_a_limit_to_what_is_added(signed: RegistryServer, bundle: Path, tmp_path: Path) -> None:
    put_layers(signed, *[put(signed, b"{}", bytes([number])) for number in range(MAX_SIGNATURES)])
    with pytest.raises(DataError, match="65 signatures"):
        push(bundle, signed.reference(), signers=[made_key(tmp_path, "other").signer], options=QUICK)


def test_a_key_of_cosign_is_ecdsa_on_p256(pushed: RegistryServer, bundle: Path, box: Path, tmp_path: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    pem = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "cosign.pub").write_bytes(pem)
    payload = json.dumps(payload_about(pushed)).encode()
    put_layers(pushed, put(pushed, payload, private.sign(payload, ec.ECDSA(SHA256()))))
    pull(pushed.reference(), box / "m.nnd", signed_by=tmp_path / "cosign.pub", options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    (box / "m.nnd").unlink()
    checked = read_verifying_key(tmp_path / "cosign.pub")
    assert not checked.is_signature(b"no DER", payload)
    assert not checked.is_signature(private.sign(b"another", ec.ECDSA(SHA256())), payload)


def test_keys_of_other_kinds_are_refused(pushed: RegistryServer, box: Path, tmp_path: Path, key: Key) -> None:
    public = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    made = {
        "p384": ec.generate_private_key(ec.SECP384R1()).public_key().public_bytes(*public),
        "ed448": Ed448PrivateKey.generate().public_key().public_bytes(*public),
        "private": key.public.with_suffix(".key").read_bytes(),
        "text": b"no key",
        "empty": b"",
    }
    for name, pem in made.items():
        (tmp_path / f"{name}.pem").write_bytes(pem)
        with pytest.raises(DataError, match=r"neither ECDSA on P-256 nor ed25519|no public key"):
            pull(pushed.reference(), box / "m.nnd", signed_by=tmp_path / f"{name}.pem", options=QUICK)
    with pytest.raises(MissingInputError):
        pull(pushed.reference(), box / "m.nnd", signed_by=tmp_path / "none.pub", options=QUICK)
    assert pushed.asked == []


def changed(change: Callable[[Text], object]) -> Callable[[RegistryServer], bytes]:
    def text(registry: RegistryServer) -> bytes:
        payload = payload_about(registry)
        change(payload)
        return json.dumps(payload).encode()

    return text


SIGNED_TEXTS: dict[str, tuple[Callable[[RegistryServer], bytes], str]] = {
    "another digest": (
        changed(lambda text: text["critical"]["image"].update({"docker-manifest-digest": f"sha256:{'0' * 64}"})),
        "another artifact",
    ),
    "another type": (changed(lambda text: text["critical"].update(type="atomic container signature")), "a 'atomic"),
    "no type": (changed(lambda text: text["critical"].pop("type")), "no payload"),
    "no identity": (changed(lambda text: text["critical"].pop("identity")), "no payload"),
    "no optional": (changed(lambda text: text.pop("optional")), "no payload"),
    "a digest that is no text": (
        changed(lambda text: text["critical"]["image"].update({"docker-manifest-digest": [1]})), "no payload",
    ),
    "a field more": (changed(lambda text: text.update(more=1)), "no payload"),
    "a critical field more": (changed(lambda text: text["critical"].update(more=1)), "no payload"),
    "a field of the image more": (changed(lambda text: text["critical"]["image"].update(more=1)), "no payload"),
    "a field of the identity more": (changed(lambda text: text["critical"]["identity"].update(more=1)), "no payload"),
    "two digests": (
        lambda registry: json.dumps(payload_about(registry)).encode().replace(
            b'{"docker-manifest-digest"', b'{"docker-manifest-digest": "sha256:1", "docker-manifest-digest"'
        ), "twice",
    ),
    "no JSON": (lambda registry: b"sha256", "not JSON"),
    "deep": (lambda registry: b"[" * 60_000, "nested deeper"),
    "large": (changed(lambda text: text.update(optional={"x": "y" * MAX_PAYLOAD_BYTES})), "no payload of at most"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SIGNED_TEXTS.values(), ids=SIGNED_TEXTS)
def test_a_payload_that_is_not_of_this_artifact_counts_for_nothing_whoever_signed_it(
    pushed, box, key, text, message
) -> None:
    payload = text(pushed)
    put_layers(pushed, put(pushed, payload, key.signer.sign(payload)))
    assert message in refused(pushed, box, key)


LAYERS: dict[str, tuple[Text, str]] = {
    "another type": ({"mediaType": "application/octet-stream"}, "no payload of at most"),
    "too large": ({"size": MAX_PAYLOAD_BYTES + 1}, "no payload of at most"),
    "of a size below none": ({"size": -1}, "no payload of at most"),
    "of less than there is": ({"size": 5}, "more than 5 bytes"),
    "of more than there is": ({"size": 60_000}, "damaged"),
    "of a size that is no number": ({"size": True}, "no manifest of signatures"),
    "gone": ({"digest": f"sha256:{'0' * 64}"}, "has no blob"),
    "elsewhere": ({"digest": "../../manifests/1"}, "no manifest of signatures"),
    "without annotations": ({"annotations": None}, "no manifest of signatures"),
    "without signature": ({"annotations": {}}, "not of this key"),
    "no base64": ({"annotations": {SIGNATURE: "*" * 88}}, "no base64"),
    "a signature that is no text": ({"annotations": {SIGNATURE: 5}}, "no base64"),
    "another signature": ({"annotations": {SIGNATURE: "A" * 86 + "=="}}, "not of this key"),
}


@pytest.mark.parametrize(("changes", "message"), LAYERS.values(), ids=LAYERS)
def test_a_layer_that_is_no_signature_counts_for_nothing(pushed, box, key, changes, message) -> None:
    payload = json.dumps(payload_about(pushed)).encode()
    put_layers(pushed, put(pushed, payload, key.signer.sign(payload), **changes))
    assert message in refused(pushed, box, key)


def test_blobs_that_are_not_what_the_layer_says_count_for_nothing(pushed: RegistryServer, box: Path, key: Key) -> None:
    payload = json.dumps(payload_about(pushed)).encode()
    layer = put(pushed, payload[:-1] + b" ", key.signer.sign(payload))
    pushed.blobs[layer["digest"]] = payload
    put_layers(pushed, layer)
    assert "damaged: the digest of the blob" in refused(pushed, box, key)


MANIFESTS: dict[str, Callable[[Text], object]] = {
    "an index": lambda found: found.update(mediaType="application/vnd.oci.image.index.v1+json"),
    "another version": lambda found: found.update(schemaVersion=1),
    "no layers": lambda found: found["layers"].clear(),
    "layers that are none": lambda found: found.update(layers={}),
    "a layer that is none": lambda found: found["layers"].append(7),
    "too many": lambda found: found.update(layers=found["layers"] * (MAX_SIGNATURES + 1)),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_is_none_of_signatures_is_refused_and_not_written_over(
    signed, bundle, box, key, change
) -> None:
    found = json.loads(signed.manifests[tag_of(signed)])
    change(found)
    signed.manifests[tag_of(signed)] = text = json.dumps(found).encode()
    assert "signatures" in refused(signed, box, key)
    with pytest.raises(DataError):
        push(bundle, signed.reference(), signers=[key.signer], options=QUICK)
    assert signed.manifests[tag_of(signed)] == text


def test_a_manifest_without_end_or_no_json_is_refused(signed: RegistryServer, box: Path, key: Key) -> None:
    for text, message in ((b" " * (5 << 20), "4194304"), (b"{", "not JSON"), (b'{"a":1,"a":1}', "twice")):
        signed.manifests[tag_of(signed)] = text
        assert message in refused(signed, box, key)


def test_layers_that_count_for_nothing_hide_none_that_counts(signed, bundle, box, key) -> None:
    [ours] = json.loads(signed.manifests[tag_of(signed)])["layers"]
    gone = put(signed, b"{}", b"")
    del signed.blobs[gone["digest"]]
    put_layers(signed, gone, put(signed, b"[", key.signer.sign(b"[")), {**ours, "size": 1}, ours)
    pull(signed.reference(), box / "m.nnd", signed_by=key.public, options=QUICK)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()


def test_the_tag_names_a_bundle_only_after_its_signature_is_there(registry, bundle, key) -> None:
    push(bundle, registry.reference(), signers=[key.signer], options=QUICK)
    put_there = [found["name"] for path in registry.paths("PUT") if (found := MANIFEST.fullmatch(path))]
    assert put_there == [tag_of(registry), "1"]


def test_who_cannot_sign_or_whose_signature_is_not_taken_gives_no_bundle_a_tag(registry, bundle, key) -> None:
    with pytest.raises(UnavailableError, match="ended with 1"):
        push(bundle, registry.reference(), signers=[CommandSigner(key.signer.public, "false")], options=QUICK)
    assert registry.asked == []

    def fault(handler: Handler, asked: Asked) -> bool:
        is_signature = asked.method == "PUT" and asked.path.endswith(".sig")
        if is_signature:
            handler.answer(403)
        return is_signature

    registry.fault = fault
    with pytest.raises(PolicyError):
        push(bundle, registry.reference(), signers=[key.signer], options=QUICK)
    assert registry.manifests == {}


def test_commands_sign_and_ask_for_a_signature(registry, bundle, box, tmp_path, key, monkeypatch, capsys) -> None:
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    private = str(key.public.with_suffix(".key"))
    assert run_command(["push", str(bundle), registry.reference(), "--key", private]) == 0
    assert capsys.readouterr().out.splitlines()[2] == f"signed beside it by {key.signer.public.id:.16}"
    assert run_command(["push", str(bundle), registry.reference(), "--key", private, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signatures"] == [key.signer.public.id]
    assert run_command(["push", str(bundle), registry.reference(), "--signer-cmd", "cat"]) == 2
    out = ["-o", str(box / "m.nnd")]
    other = made_key(tmp_path, "other").public
    capsys.readouterr()
    assert run_command(["pull", registry.reference(), *out, "--signed-by", str(other)]) == 77
    told = capsys.readouterr().err
    assert re.fullmatch(r"nndeploy: error\[policy\]: oci://\S+: not signed by the key [0-9a-f]{16}: .*\n", told)
    assert run_command(["pull", registry.reference(), *out, "--signed-by", str(key.public)]) == 0
    assert run_command(["install", "faces", str(bundle), "--signed-by", str(key.public)]) == 2
