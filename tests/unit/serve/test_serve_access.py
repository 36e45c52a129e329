# SPDX-License-Identifier: Apache-2.0
"""Where a service may listen, and who may call it."""

import socket
import stat
from pathlib import Path

import pytest

from nndeploy.errors import CannotCreateError, DataError, MissingInputError, PolicyError, UsageError
from nndeploy.farm.cluster.certificates import make_certificates
from nndeploy.serve.access import Access, access_of
from nndeploy.serve.address import Address, address_in, bound
from nndeploy.serve.options import ServeOptions

TOKEN = "a-token-of-some-length"  # noqa: S105 - of a test


def private(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(("text", "address", "is_local"), [
    ("127.0.0.1:80", Address("127.0.0.1", 80), True), ("localhost:0", Address("127.0.0.1", 0), True),
    ("127.9.9.9:1", Address("127.9.9.9", 1), True), ("[::1]:80", Address("::1", 80), True),
    ("0.0.0.0:80", Address("0.0.0.0", 80), False),  # noqa: S104 - an address that is refused
    ("[::]:80", Address("::", 80), False), ("192.168.1.2:80", Address("192.168.1.2", 80), False),
    ("unix:/run/a.sock", Address(path="/run/a.sock"), True),
])  # fmt: skip
def test_an_address_says_who_can_reach_it(text, address, is_local) -> None:
    found = address_in("--http")(text)
    assert (found, found.is_local) == (address, is_local)
    assert text == "localhost:0" or str(found) == text


def test_none_is_no_address() -> None:
    assert address_in("--grpc")("none") is None


@pytest.mark.parametrize("text", ["", "80", "example.com:80", "1.2.3:80", "1.2.3.4:", "1.2.3.4:65536", "unix:", ":80"])
def test_what_is_no_address_is_refused(text) -> None:
    with pytest.raises(UsageError, match="is no address"):
        address_in("--http")(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::"])  # noqa: S104 - an address that is refused
@pytest.mark.parametrize("given", [{}, {"token_file": Path("t")}, {"tls_cert": Path("c"), "tls_key": Path("k")}])
def test_other_machines_need_tls_and_a_token(host, given) -> None:
    with pytest.raises(UsageError, match="can be reached from other machines, without TLS and a token"):
        ServeOptions(http=Address(host, 1), **given)
    with pytest.raises(UsageError, match="can be reached from other machines"):
        ServeOptions(grpc=Address(host, 1), **given)


@pytest.mark.parametrize(("given", "reason"), [
    ({"http": None, "grpc": None}, "--http none"),
    ({"http": Address("127.0.0.1", 5), "grpc": Address("127.0.0.1", 5)}, "are both 127.0.0.1:5"),
    ({"tls_cert": Path("c")}, "go together"),
    ({"max_body": 0}, "leaves no request"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(given, reason) -> None:
    with pytest.raises(UsageError, match=reason):
        ServeOptions(**given)


def test_a_token_is_the_whole_token() -> None:
    access = Access(TOKEN)
    assert access.is_granted(f"Bearer {TOKEN}")
    for shown in ("", TOKEN, f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"bearer {TOKEN}", "Bearer ", "Bearer \udcff"):
        assert not access.is_granted(shown), shown
    assert Access().is_granted("")


@pytest.mark.parametrize(("headers", "refused"), [
    ({"Host": "127.0.0.1:8000"}, False), ({"Host": "localhost"}, False), ({"Host": "[::1]:8000"}, False), ({}, False),
    ({"Host": "evil.example:8000"}, True), ({"Host": "127.0.0.1", "Origin": "https://evil.example"}, True),
])  # fmt: skip
def test_without_a_token_a_page_in_a_browser_is_refused(headers, refused) -> None:
    assert Access().refuses_page(headers) is refused
    assert not Access(TOKEN).refuses_page(headers)


def test_a_token_is_read_from_a_file_of_its_owner_alone(tmp_path) -> None:
    path = private(tmp_path / "token", f"{TOKEN}\n")
    assert access_of(ServeOptions(token_file=path)).token == TOKEN
    assert TOKEN not in repr(access_of(ServeOptions(token_file=path)))
    path.chmod(0o640)
    with pytest.raises(PolicyError, match=r"\(hint: chmod 600"):
        access_of(ServeOptions(token_file=path))


@pytest.mark.parametrize("text", ["", "short", "two words of some length", "ä" * 20])
def test_a_token_that_can_be_guessed_or_sent_wrong_is_refused(tmp_path, text) -> None:
    with pytest.raises(DataError, match="16 or more visible characters"):
        access_of(ServeOptions(token_file=private(tmp_path / "token", text)))


def test_a_certificate_goes_with_its_key(tmp_path) -> None:
    make_certificates(tmp_path)
    cert, key, other = (tmp_path / name for name in ("scheduler.pem", "scheduler-key.pem", "worker-key.pem"))
    access = access_of(ServeOptions(tls_cert=cert, tls_key=key))
    assert access.context is not None
    assert access.certificate == cert.read_bytes()
    with pytest.raises(DataError, match="no certificate with its key"):
        access_of(ServeOptions(tls_cert=cert, tls_key=other))
    with pytest.raises(MissingInputError):
        access_of(ServeOptions(tls_cert=tmp_path / "none.pem", tls_key=key))
    key.chmod(0o644)
    with pytest.raises(PolicyError, match="other users"):
        access_of(ServeOptions(tls_cert=cert, tls_key=key))


def test_a_socket_in_the_file_system_is_for_its_owner(tmp_path) -> None:
    path = tmp_path / "s"
    with bound(Address(path=str(path))):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(CannotCreateError, match="Address already in use"):
            bound(Address(path=str(path)))
    assert path.exists()  # as a service leaves it that is killed
    bound(Address(path=str(path))).close()


def test_what_is_no_socket_is_never_replaced(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    with pytest.raises(CannotCreateError, match="not a socket"):
        bound(Address(path=str(path)))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(CannotCreateError, match="not a socket"):
        bound(Address(path=str(link)))
    assert path.read_text() == "kept"


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(CannotCreateError, match="Address already in use"):
            bound(Address("127.0.0.1", other.getsockname()[1]))
