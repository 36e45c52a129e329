# SPDX-License-Identifier: Apache-2.0
"""Machines share builds through bazel-remote; whatever it does costs no more than a build and a line."""

import base64
import contextlib
import datetime as dt
import hashlib
import ipaddress
import json
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bazel_remote_server import BazelRemoteServer, Handler
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nndeploy.build_cache import remote_cache
from nndeploy.build_cache.entry import Blob, Entry, encode
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.build_cache.remote_address import ALWAYS, NEVER, TRUSTED, remote_address
from nndeploy.build_cache.remote_cache import RemoteCache
from nndeploy.errors import UsageError
from nndeploy.trust.signers import FileSigner, new_key
from nndeploy.trust.trust_store import TrustStore

Opened = Callable[..., RemoteCache]
PARTS = {"model": "m"}
CONTENT = b"bundle" * 100_000


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of who runs the tests; skips where the library is not installed."""
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))


@pytest.fixture
def server() -> Iterator[BazelRemoteServer]:
    with BazelRemoteServer() as made:
        yield made


@pytest.fixture
def opened(server: BazelRemoteServer, store: TrustStore, said: list[str]) -> Opened:
    def make(push: str = ALWAYS, address: str = "", ca: str = "") -> RemoteCache:
        return RemoteCache(address or server.address, store, said.append, push, ca)

    return make


@pytest.fixture
def other(tmp_path: Path, store: TrustStore, signer: FileSigner, said: list[str]) -> LocalCache:
    """The local cache of another machine."""
    return LocalCache(tmp_path / "other", store, signer, said.append)


@pytest.fixture
def shared(opened: Opened, build: Callable[..., Entry], cache: LocalCache, server: BazelRemoteServer) -> Entry:
    """A build that the server has."""
    entry = build(CONTENT, **PARTS)
    opened().send(entry.key, cache)
    server.asked.clear()
    return entry


@pytest.fixture
def log_in(tmp_path: Path, server: BazelRemoteServer) -> Callable[[str], None]:
    def write(password: str) -> None:
        (tmp_path / "docker").mkdir()
        auth = base64.b64encode(password.encode()).decode()
        config = {"auths": {server.host: {"auth": auth}}}
        (tmp_path / "docker" / "config.json").write_text(json.dumps(config))

    return write


def test_a_build_comes_to_another_machine_as_it_was_signed(server, opened, shared, cache, other, said) -> None:
    assert opened().bring(shared.key, other, "near") == shared
    assert other.signed(shared.key) == cache.signed(shared.key)
    assert other.content(shared.outputs["bundle"]) == CONTENT
    assert [entry.key for entry in other.near("near")] == [shared.key]
    assert server.methods == "GET ac GET cas GET cas"
    assert said == []


def test_a_build_comes_and_goes_over_one_connection(server, opened, shared, other) -> None:
    """TLS is not agreed upon again for every file."""
    assert server.num_connections == 1
    opened().bring(shared.key, other, "near")
    assert server.num_connections == 2


def test_an_unknown_key_is_one_question(server, opened, other, said) -> None:
    assert opened().bring("0" * 64, other, "near") is None
    assert (server.methods, said) == ("GET ac", [])


def test_what_is_here_is_not_fetched_again(server, opened, shared, cache) -> None:
    shutil.rmtree(cache.folder / "ac")
    (cache.folder / "ac").mkdir()
    assert opened().bring(shared.key, cache, "near") == shared
    assert server.methods == "GET ac GET cas"


def test_files_that_are_there_are_not_sent_and_the_first_build_of_a_key_stays(server, opened, build, cache) -> None:
    first = build(**PARTS)
    opened().send(first.key, cache)
    assert server.methods == "HEAD ac" + " HEAD cas PUT cas" * 2 + " PUT ac"
    server.asked.clear()
    opened().send(first.key, cache)
    assert server.methods == "HEAD ac"
    server.asked.clear()
    second = build(model="another")
    opened().send(second.key, cache)
    assert sorted(server.methods.split(" PUT ")) == ["HEAD ac HEAD cas HEAD cas", "ac", "cas"]


@pytest.mark.parametrize(("push", "is_known", "is_sent"), [
    (NEVER, True, False), (TRUSTED, False, False), (TRUSTED, True, True), (ALWAYS, False, True)
])  # fmt: skip
def test_who_may_bring_builds_is_said(server, opened, build, cache, log_in, push, is_known, is_sent) -> None:
    if is_known:
        log_in("farm:word")
    opened(push).send(build(**PARTS).key, cache)
    assert bool(server.results) == is_sent
    assert bool(server.asked) == is_sent, "nothing is asked where nothing may be brought"


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_password_of_docker_s_file_is_shown_at_once(
    server, opened, build, cache, other, log_in, said, is_closed
) -> None:
    server.password, server.is_closed = "farm:hidden-word", is_closed
    log_in(server.password)
    entry = build(**PARTS)
    opened(TRUSTED).send(entry.key, cache)
    assert opened().bring(entry.key, other, "near") == entry
    assert said == []
    assert server.methods.startswith("HEAD ac HEAD cas PUT cas HEAD")  # nothing was sent twice


def test_who_may_only_read_still_reads(server, opened, shared, cache, other, build, said) -> None:
    server.password = "farm:hidden-word"  # noqa: S105
    remote = opened(ALWAYS)
    for model in ("a", "b"):
        remote.send(build(model=model).key, cache)
    assert remote.bring(shared.key, other, "near") == shared
    assert len(said) == 1
    assert said[0].startswith(f"nothing is uploaded to the cache {server.address}: ")
    assert "PUT" not in server.methods.partition("PUT")[2], "who was refused once tries again"


def status(code: int) -> Callable[[Handler], bool]:
    return lambda handler: handler.answer(code, b"it is broken") is None


def cut_in_a_file(handler: Handler) -> bool:
    if handler.kind != "cas":
        return False
    data = handler.owner.files[handler.name]
    handler.answer(200, data[: len(data) // 2], Content_Length=str(len(data)))
    handler.cut()
    return True


def without_an_answer(handler: Handler) -> bool:
    handler.cut()
    return True


def compressed(handler: Handler) -> bool:
    handler.answer(200, b"x", Content_Encoding="zstd")
    return True


@pytest.mark.parametrize("fault", [
    status(401), status(403), status(429), status(500), status(503), without_an_answer, cut_in_a_file
], ids=["401", "403", "429", "500", "503", "no answer", "cut"])  # fmt: skip
def test_who_does_not_answer_is_a_miss_one_line_and_not_asked_again(server, opened, shared, other, said, fault) -> None:
    server.fault = fault
    remote = opened()
    assert remote.bring(shared.key, other, "near") is None
    num_asked = len(server.asked)
    assert remote.bring(shared.key, other, "near") is None
    remote.send(shared.key, other)
    assert len(server.asked) == num_asked
    assert len(said) == 1
    assert said[0].startswith(f"the cache {server.address} is not used: ")
    assert other.entry(shared.key) is None
    assert list((other.folder / "tmp").iterdir()) == []


def replaced(server: BazelRemoteServer, entry: Entry, name: str, data: bytes) -> None:
    """Gives other bytes under the digest of a file, or of the entry."""
    found = {one["path"]: one["digest"]["hash"] for one in server.results[entry.key]["outputFiles"]}
    server.files[found[name]] = data


@pytest.mark.parametrize("name", ["bundle", "entry"])
@pytest.mark.parametrize("how", ["other", "shorter", "longer"])
def test_wrong_bytes_are_a_miss_and_the_others_are_still_asked_for(
    server, opened, shared, other, cache, said, build, name, how
) -> None:
    good = build(b"good", model="good")
    opened().send(good.key, cache)
    found = cache.signed(shared.key)
    assert found is not None
    right = CONTENT if name == "bundle" else found[1]
    replaced(server, shared, name, {"other": b"!" + right[1:], "shorter": right[:-1], "longer": right + b"!"}[how])
    remote = opened()
    assert remote.bring(shared.key, other, "near") is None
    assert other.entry(shared.key) is None
    assert list((other.folder / "tmp").iterdir()) == []
    assert not other.place(shared.outputs["bundle"]).exists()
    assert remote.bring(good.key, other, "near") == good
    assert len(said) == 1
    assert said[0].startswith(f"a build of the cache {server.address} is not used: ")


def test_an_endless_file_is_read_no_further_than_its_size(server, opened, shared, other, said) -> None:
    sent = []

    def endless(handler: Handler) -> bool:
        if handler.kind != "cas" or handler.owner.files[handler.name] != CONTENT:
            return False
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                sent.append(handler.wfile.write(b"x" * 65536))
        except OSError:
            return True

    server.fault = endless
    assert opened().bring(shared.key, other, "near") is None
    assert len(said) == 1
    assert "more bytes" in said[0]


RESULTS: list[Any] = [
    b"", b"[]", b"{}", b"\x12\x07proto", b"[" * 100_000, b'{"outputFiles": 1}', b'{"outputFiles": [{"path": "entry"}]}',
    b'{"outputFiles": [{"path": "entry", "digest": {"hash": "../x", "sizeBytes": "1"}}]}',
    b'{"outputFiles": [{"path": "entry", "digest": {"hash": "%s", "sizeBytes": "-1"}}]}' % (b"0" * 64),
    b'{"outputFiles": [{"path": "entry", "digest": {"hash": "%s", "sizeBytes": "1e9"}}]}' % (b"0" * 64),
    b'{"outputFiles": [{"path": "entry", "digest": {"hash": "%s", "sizeBytes": "99999999999"}}]}' % (b"0" * 64),
    b" " * (remote_cache.MAX_RESULT_BYTES + 1),
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS, ids=range(len(RESULTS)))
def test_what_is_no_result_is_a_miss(server, opened, shared, other, said, result) -> None:
    server.fault = lambda handler: handler.kind == "ac" and handler.answer(200, result) is None
    assert opened().bring(shared.key, other, "near") is None
    assert len(said) == 1


def test_a_compressed_answer_that_nobody_asked_for_is_a_miss(server, opened, shared, other, said) -> None:
    server.fault = compressed
    assert opened().bring(shared.key, other, "near") is None
    assert len(said) == 1


def test_an_entry_that_nobody_trusted_signed_is_a_miss_and_is_replaced_by_the_next_build(
    server, opened, shared, other, tmp_path, build, cache, said
) -> None:
    forged = encode(shared, new_key(tmp_path / "stranger.key"))
    digest = {"hash": hashlib.sha256(forged).hexdigest(), "sizeBytes": str(len(forged))}
    server.files[digest["hash"]] = forged
    server.results[shared.key]["outputFiles"] = [{"path": "entry", "digest": digest}]
    remote = opened()
    assert remote.bring(shared.key, other, "near") is None
    assert "no key trusted for code" in said[0]
    remote.send(shared.key, cache)
    assert opened().bring(shared.key, other, "near") == shared


def test_an_entry_of_another_key_is_a_miss(server, opened, shared, other, said) -> None:
    server.results["0" * 64] = server.results[shared.key]
    assert opened().bring("0" * 64, other, "near") is None
    assert "another key" in said[0]


def test_a_file_that_went_is_a_miss_without_a_word(server, opened, shared, other, said) -> None:
    def gone(handler: Handler) -> bool:
        is_file = handler.kind == "cas" and handler.owner.files[handler.name] == CONTENT
        return is_file and handler.answer(404) is None

    server.fault = gone
    assert opened().bring(shared.key, other, "near") is None
    assert said == []


def test_a_slow_file_is_given_up(server, opened, shared, other, said, monkeypatch) -> None:
    """A byte now and then."""

    def drips(handler: Handler) -> bool:
        if handler.kind != "cas":
            return False
        data = handler.owner.files[handler.name]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        with contextlib.suppress(OSError):
            for byte in data:
                handler.wfile.write(bytes((byte,)))
                time.sleep(0.02)
        return True

    server.fault = drips
    monkeypatch.setattr(remote_cache, "SILENCE_SECONDS", 0.1)
    assert opened().bring(shared.key, other, "near") is None
    assert len(said) == 1
    assert "too slow" in said[0]


def test_nobody_there_is_one_line(opened, other, said, server) -> None:
    server.server.server_close()
    remote = opened()
    assert remote.bring("0" * 64, other, "near") is None
    assert remote.bring("1" * 64, other, "near") is None
    assert len(said) == 1
    assert "cannot be reached" in said[0]


def test_a_file_of_authorities_that_is_none_is_one_line(opened, other, said, tmp_path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    assert opened(address="https://127.0.0.1:1/x", ca=str(tmp_path / "ca.pem")).bring("0" * 64, other, "near") is None
    assert len(said) == 1
    assert "PEM file" in said[0]


def test_the_authorities_of_its_certificate_may_be_named(server, opened, shared, other, said, tmp_path) -> None:
    certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
    address = server.address.replace("http:", "https:")
    assert opened(address=address).bring(shared.key, other, "near") is None
    assert "TLS" in said[0]
    assert opened(address=address, ca=str(certificate)).bring(shared.key, other, "near") == shared
    assert len(said) == 1


def self_signed(folder: Path) -> Path:
    """Returns a file with a key and a certificate of this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cache")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
    certificate = made.add_extension(names, critical=False).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "cache.pem").write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "cache.pem"


def test_a_result_names_every_file_so_that_the_cache_keeps_them_together(server, shared) -> None:
    files = {one["path"]: one["digest"] for one in server.results[shared.key]["outputFiles"]}
    assert set(files) == {"bundle", "entry"}
    assert files["bundle"] == {"hash": shared.outputs["bundle"].sha256, "sizeBytes": str(len(CONTENT))}
    assert Blob(files["bundle"]["hash"], int(files["bundle"]["sizeBytes"])) == shared.outputs["bundle"]


@pytest.mark.parametrize("text", [
    "", "cache", "ftp://x", "https://", "https://me:hidden@x/", "https://x/?a=b", "https://x/#a", "http://x y/"
])  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        remote_address(text)
    assert "hidden" not in str(caught.value)


def test_an_address_is_told_without_a_slash_at_its_end() -> None:
    assert remote_address("https://x:1/builds/") == "https://x:1/builds"
