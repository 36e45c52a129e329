# SPDX-License-Identifier: Apache-2.0
"""Registries that fail, lie or attack: one error with its exit code, the output as it was, no password elsewhere."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from registry_server import BLOB, MANIFEST, Asked, Handler, RegistryServer, digest_of
from weighty_bundles import QUICK

from nndeploy.errors import (
    BundleError,
    BusyError,
    DataError,
    InputOutputError,
    MissingInputError,
    NndeployError,
    PolicyError,
    UnavailableError,
)
from nndeploy.registry.artifact import BUNDLE_SHA256, TITLE
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push

OLD = b"the old file"
KNOWN = replace(QUICK, username="farm", password="hidden-word")  # noqa: S106


@pytest.fixture
def out(box: Path) -> Path:
    """A file at the output's place, which has to stay."""
    (box / "m.nnd").write_bytes(OLD)
    return box / "m.nnd"


def refused(out: Path, registry: RegistryServer, kind: type[NndeployError], options: Any = QUICK) -> str:
    """Returns the message of a pull that fails and leaves everything as it was."""
    with pytest.raises(kind) as caught:
        pull(registry.reference(), out, options=options)
    assert type(caught.value) is kind or issubclass(type(caught.value), kind)
    assert out.read_bytes() == OLD
    assert [path.name for path in out.parent.iterdir() if not path.name.startswith(".nndeploy-pull-")] == ["m.nnd"]
    assert "hidden-word" not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def endless(handler: Handler, piece: bytes, sent: list[int], length: str = "") -> None:
    """Answers with a piece again and again, and notes the bytes that were sent."""
    handler.close_connection = True
    handler.answer(200, Content_Length=length)
    for _ in range(10_000):
        handler.wfile.write(piece)
        sent.append(len(piece))


def only_manifests(answer: Callable[[Handler], object]) -> Callable[[Handler, Asked], bool]:
    def fault(handler: Handler, asked: Asked) -> bool:
        if not MANIFEST.fullmatch(asked.path):
            return False
        answer(handler)
        return True

    return fault


def only_blobs(answer: Callable[[Handler, bytes], object]) -> Callable[[Handler, Asked], bool]:
    def fault(handler: Handler, asked: Asked) -> bool:
        found = BLOB.fullmatch(asked.path)
        data = handler.owner.blobs.get(found["name"], b"") if found else b""
        if len(data) < 100_000:
            return False
        answer(handler, data)
        return True

    return fault


@pytest.mark.parametrize(("status", "kind", "code"), [
    (400, UnavailableError, 69), (401, PolicyError, 77), (403, PolicyError, 77), (404, MissingInputError, 66),
    (418, UnavailableError, 69), (429, BusyError, 75), (500, UnavailableError, 69), (503, UnavailableError, 69),
])  # fmt: skip
def test_each_status_has_its_exit_code(pushed, out, status, kind, code) -> None:
    told = json.dumps({"errors": [{"message": "says\n\x1b[31mno " + "x" * 1000}]}).encode()
    pushed.fault = only_manifests(lambda handler: handler.answer(status, told, WWW_Authenticate="Basic realm=x"))
    message = refused(out, pushed, kind)
    assert kind.exit_code == code
    assert len(message) < 500
    assert "\x1b" not in message


def test_what_passes_is_tried_again(pushed: RegistryServer, bundle: Path, out: Path) -> None:
    failures = iter((500, 503, 429))

    def fault(handler: Handler, asked: Asked) -> bool:
        status = next(failures, 0)
        if status:
            handler.answer(status, Retry_After="0")
        return bool(status)

    pushed.fault = fault
    pull(pushed.reference(), out, options=QUICK)
    assert out.read_bytes() == bundle.read_bytes()


def test_a_tag_that_is_not_there_is_a_missing_input(pushed: RegistryServer, out: Path) -> None:
    with pytest.raises(MissingInputError, match="no bundle 9: unknown to registry"):
        pull(pushed.reference("9"), out, options=QUICK)


def test_nobody_who_listens_is_unavailable(out: Path) -> None:
    with RegistryServer() as registry:
        pass
    assert "Connection refused" in refused(out, registry, UnavailableError)


def test_silence_ends_at_the_time_limit(pushed: RegistryServer, out: Path) -> None:
    pushed.fault = only_manifests(lambda handler: time.sleep(3))
    refused(out, pushed, UnavailableError, replace(QUICK, timeout=0.2))


@pytest.mark.parametrize(("length", "piece"), [("99999999", b"{" * 65536), ("", b" " * 65536)])
def test_a_manifest_without_end_is_not_read_to_its_end(pushed, out, length, piece) -> None:
    sent: list[int] = []
    pushed.fault = only_manifests(lambda handler: endless(handler, piece, sent, length))
    assert "4194304" in refused(out, pushed, DataError)
    assert sum(sent) < 50 << 20


def test_a_manifest_that_drips_ends_at_the_time_limit(pushed: RegistryServer, out: Path) -> None:
    def dripping(handler: Handler) -> None:
        handler.close_connection = True
        handler.answer(200, Content_Length="100000")
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)

    pushed.fault = only_manifests(dripping)
    began = time.monotonic()
    refused(out, pushed, InputOutputError, replace(QUICK, timeout=0.4))
    assert time.monotonic() - began < 10  # all of it would take 20 s


def test_a_manifest_of_another_digest_is_damaged(pushed: RegistryServer, out: Path) -> None:
    digest = digest_of(pushed.manifests["1"])
    pushed.manifests[digest] = pushed.manifests["1"] + b" "
    with pytest.raises(BundleError, match="digest"):
        pull(pushed.reference("", digest), out, options=QUICK)


@pytest.mark.parametrize("answer", [
    lambda handler, data: handler.answer(200, data + b"x"),
    lambda handler, data: handler.answer(200, data[:-1]),
    lambda handler, data: handler.answer(200, bytes(len(data))),
    lambda handler, data: handler.answer(200, data, Content_Encoding="gzip"),
    lambda handler, data: handler.answer(206, data, Content_Range="bytes 5-9/10"),
    lambda handler, data: handler.answer(206, data),
    lambda handler, data: handler.answer(404),
], ids=["longer", "shorter", "other bytes", "compressed", "another range", "no range", "gone"])  # fmt: skip
def test_blobs_that_are_not_what_they_should_be_are_damaged(pushed, out, answer) -> None:
    pushed.fault = only_blobs(answer)
    refused(out, pushed, DataError)
    assert DataError.exit_code == 65


def test_a_blob_without_end_is_read_no_further_than_its_size(pushed: RegistryServer, out: Path) -> None:
    sent: list[int] = []
    pushed.fault = only_blobs(lambda handler, data: endless(handler, data, sent))
    refused(out, pushed, BundleError)
    assert sum(sent) < 30 << 20


def repushed(registry: RegistryServer, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Gives the tag to an artifact whose manifest, and that of the bundle in it, were changed; hashes are right."""
    artifact = json.loads(registry.manifests["1"])
    layer = next(one for one in artifact["layers"] if one["annotations"][TITLE] == "manifest.json")
    inner = json.loads(registry.blobs[layer["digest"]])
    change(artifact, inner)
    text = json.dumps(inner, sort_keys=True, separators=(",", ":")).encode()
    registry.blobs[digest_of(text)] = text
    layer.update(digest=digest_of(text), size=len(text))
    registry.manifests["1"] = json.dumps(artifact).encode()


INNER_CHANGES = {
    "newer": (lambda artifact, inner: inner["format"].update(major=2), "newer|upgrade"),
    "not listed": (lambda artifact, inner: inner["members"].pop("submodels/s0/plan"), "submodels/s0/plan"),
    "another hash": (lambda artifact, inner: inner["members"]["submodels/s0/plan"].update(sha256="0" * 64), "agree"),
    "another size": (lambda artifact, inner: inner["members"]["weights/0.bin"].update(size_bytes=5), "agree"),
    "one less": (lambda artifact, inner: artifact["layers"].pop(), "agree"),
    "one more": (
        lambda artifact, inner: artifact["layers"].append(
            {**artifact["layers"][0], "annotations": {TITLE: "weights/9.bin"}}
        ), "agree",
    ),
    "no chain": (lambda artifact, inner: inner["submodels"].clear(), ""),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), INNER_CHANGES.values(), ids=INNER_CHANGES)
def test_the_bundle_s_own_manifest_is_checked_before_the_weights_come(pushed, out, change, message) -> None:
    repushed(pushed, change)
    assert re.search(message, refused(out, pushed, BundleError))
    assert len(pushed.fetched) == 1


def test_members_that_make_another_bundle_than_the_one_named_are_damaged(pushed: RegistryServer, out: Path) -> None:
    repushed(pushed, lambda artifact, inner: artifact["annotations"].update({BUNDLE_SHA256: "0" * 64}))
    assert "damaged" in refused(out, pushed, BundleError)
    assert list(out.parent.glob(".nndeploy-pull-*")) == []


@pytest.mark.parametrize("path", ["/v2/team/faces/manifests/1", "/elsewhere"])
def test_redirects_in_a_circle_end(pushed: RegistryServer, out: Path, path: str) -> None:
    pushed.fault = lambda handler, asked: handler.answer(307, Location=path) is None
    assert "redirects" in refused(out, pushed, UnavailableError)
    assert len(pushed.asked) < 20


@pytest.mark.parametrize(
    "location", ["", "ftp://127.0.0.1/x", "file:/etc/passwd", "http://[", "http://a b/", "http://u:p@127.0.0.1/", "//"]
)
def test_redirects_to_nowhere_are_refused(pushed: RegistryServer, out: Path, location: str) -> None:
    pushed.fault = lambda handler, asked: handler.answer(302, Location=location or "") is None
    refused(out, pushed, NndeployError)


def test_a_redirect_shows_the_password_to_nobody_else(pushed: RegistryServer, bundle: Path, out: Path) -> None:
    with RegistryServer(blobs=pushed.blobs) as other:

        def fault(handler: Handler, asked: Asked) -> bool:
            if "Authorization" not in asked.headers:
                handler.answer(401, WWW_Authenticate='Basic realm="farm"')
            elif BLOB.fullmatch(asked.path):
                handler.answer(307, Location=f"http://127.0.0.1:{other.port}{asked.path}")
            else:
                return False
            return True

        pushed.fault = fault
        pull(pushed.reference(), out, options=KNOWN)
        assert out.read_bytes() == bundle.read_bytes()
        assert "Authorization" in pushed.asked[-1].headers
        assert other.asked
        assert not any("Authorization" in one.headers for one in other.asked)
        other.fault = lambda handler, asked: handler.answer(401, WWW_Authenticate='Basic realm="farm"') is None
        out.write_bytes(OLD)
        refused(out, pushed, PolicyError, KNOWN)
        realm = f'Bearer realm="http://127.0.0.1:{other.port}/token"'
        other.fault = lambda handler, asked: handler.answer(401, WWW_Authenticate=realm) is None
        refused(out, pushed, PolicyError, KNOWN)
        assert not any("Authorization" in one.headers for one in other.asked)


@pytest.mark.parametrize("place", ["http://127.0.0.1:1/up", "/upload/1?state=x"])
def test_an_upload_shows_the_password_to_the_registry_alone(registry: RegistryServer, bundle: Path, place: str) -> None:
    with RegistryServer() as other:
        elsewhere = place.replace("127.0.0.1:1/up", f"127.0.0.1:{other.port}/upload/1?state=x")

        def fault(handler: Handler, asked: Asked) -> bool:
            if "Authorization" not in asked.headers:
                handler.answer(401, WWW_Authenticate='Basic realm="farm"')
            elif asked.method == "POST":
                handler.answer(202, Location=elsewhere)
            else:
                return False
            return True

        registry.fault = fault
        push(bundle, registry.reference(), options=KNOWN)
        blobs = {**registry.blobs, **other.blobs}
        assert sum(map(len, blobs.values())) > 900_000
        assert bool(other.blobs) == (place != elsewhere)
        assert not any("Authorization" in one.headers for one in other.asked)


def test_a_wrong_password_is_shown_once_and_refused(pushed: RegistryServer, out: Path) -> None:
    pushed.fault = lambda handler, asked: handler.answer(401, WWW_Authenticate='Basic realm="farm"') is None
    assert "refuses the credentials" in refused(out, pushed, PolicyError, KNOWN)
    assert len(pushed.asked) == 2


@pytest.mark.parametrize("status", [404, 413, 500, 201])
def test_uploads_that_are_not_taken_leave_no_tag(registry: RegistryServer, bundle: Path, status: int) -> None:
    registry.fault = lambda handler, asked: asked.method == "PUT" and handler.answer(status) is None
    if status == 201:  # it says so, and keeps nothing: a pull will find out
        push(bundle, registry.reference(), options=QUICK)
        return
    with pytest.raises(NndeployError):
        push(bundle, registry.reference(), options=QUICK)
    assert registry.manifests == {}


def test_an_upload_that_is_cut_is_brought_again(registry: RegistryServer, bundle: Path) -> None:
    left = [2]

    def fault(handler: Handler, asked: Asked) -> bool:
        if asked.method != "PUT" or len(asked.body) < 100_000 or not left[0]:
            return False
        left[0] -= 1
        handler.cut()
        return True

    registry.fault = fault
    pushed = push(bundle, registry.reference(), options=QUICK)
    assert pushed.reference.digest == digest_of(registry.manifests["1"])
    assert len([one for one in registry.asked if len(one.body) > 100_000]) == 5


def test_a_registry_that_keeps_another_manifest_is_told(registry: RegistryServer, bundle: Path) -> None:
    def fault(handler: Handler, asked: Asked) -> bool:
        if asked.method != "PUT" or not MANIFEST.fullmatch(asked.path):
            return False
        handler.answer(201, Docker_Content_Digest="sha256:" + "0" * 64)
        return True

    registry.fault = fault
    with pytest.raises(UnavailableError, match="another manifest"):
        push(bundle, registry.reference(), options=QUICK)
