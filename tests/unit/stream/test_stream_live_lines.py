# SPDX-License-Identifier: Apache-2.0
"""Lines over sockets and FIFOs and in files that grow: each whole line is one item, over all connections."""

import contextlib
import os
import socket
import threading
from pathlib import Path

import pytest
from streaming import within_limit

from nndeploy.errors import InputError, InputOutputError, PolicyError, UsageError
from nndeploy.stream.sources.addresses import Address, address_from_text
from nndeploy.stream.sources.live_items import backoff_seconds, live_lines
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.record_sources import line_reader
from nndeploy.stream.sources.source_rules import ReadRules

QUICK = 1_000_000


def lines_of(text, stop, **rules):
    """Returns an iterator of texts, or errors, and the figures."""
    address, figures = address_from_text(str(text)), SourceFigures("s")
    assert address is not None
    made = ReadRules(backoff_ns=QUICK, backoff_most_ns=4 * QUICK, **rules)

    def loaded():
        for item in live_lines(address, line_reader("lines"), made, stop, figures):
            try:
                yield item.load()["text"]
            except InputError as err:
                yield str(err)

    return loaded(), figures


class Server:
    """Sends each of some texts over a connection of its own."""

    def __init__(self, texts, family=socket.AF_UNIX, place="", *, reset=False):
        self._listener = socket.socket(family)
        self._listener.bind(place or ("127.0.0.1", 0))
        self._listener.listen()
        self.port = self._listener.getsockname()[1] if family != socket.AF_UNIX else 0
        self._thread = threading.Thread(target=self._serve, args=(texts, reset), daemon=True)
        self._thread.start()

    def _serve(self, texts, reset):
        with self._listener:
            for text in texts:
                connection = self._listener.accept()[0]
                connection.sendall(text)
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()


def test_a_socket_of_tcp_gives_its_lines(stop) -> None:
    server = Server([b"one\ntwo\n"], socket.AF_INET)
    found, _ = lines_of(f"tcp:127.0.0.1:{server.port}", stop)
    assert within_limit(lambda: list(found)) == ["one", "two"]


def test_a_hundred_drops_lose_and_double_no_line(tmp_path, stop) -> None:
    texts = [b"".join(b"%d\n" % number for number in range(first, first + first % 3 + 1)) for first in range(0, 300, 3)]
    Server([*texts, b"cut"], place=str(tmp_path / "s"))
    found, figures = lines_of(f"unix:{tmp_path}/s", stop, reconnect=50)
    got = []

    def read():
        for one in found:
            got.append(one)
            if one.startswith("the connection closed"):
                (tmp_path / "s").unlink()

    with pytest.raises(InputOutputError, match="cannot be opened: No such file or directory"):
        within_limit(read)
    want = b"".join(texts).decode().split()
    assert got == [*want, "the connection closed in the middle of a line"]
    assert figures.num_reconnects == 100 + 50


def test_waits_double_up_to_a_limit() -> None:
    rules = ReadRules(backoff_ns=100, backoff_most_ns=1000)
    for failures, most in ((1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (100, 1000)):
        for _ in range(20):
            assert 0.8 * most <= 1e9 * backoff_seconds(rules, failures) <= most


def test_who_listens_takes_one_connection_after_the_other(tmp_path, stop) -> None:
    path = tmp_path / "s"
    found, _ = lines_of(f"unix-listen:{path}", stop, reconnect=1000)
    got = []

    def read():
        for one in found:
            got.append(one)
            if len(got) % 2 == 0 and len(got) < 8:
                connect(b"%d\n%d\n" % (len(got), len(got) + 1))
            elif len(got) == 8:
                stop.request()

    def connect(data):
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(str(path))
            made.sendall(data)

    def begin():
        while not path.exists():
            os.sched_yield()
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return connect(b"0\n1\n")

    threading.Thread(target=begin, daemon=True).start()
    within_limit(read)
    assert got == [str(number) for number in range(8)]
    assert not path.exists(), "nothing is left behind"


def test_a_path_that_is_taken_is_not_taken_over(tmp_path, stop) -> None:
    (tmp_path / "s").write_text("mine", encoding="utf-8")
    found, _ = lines_of(f"unix-listen:{tmp_path}/s", stop)
    with pytest.raises(InputOutputError, match="cannot listen: Address already in use"):
        list(found)
    assert (tmp_path / "s").read_text(encoding="utf-8") == "mine"


def test_a_fifo_is_read_until_its_last_writer_has_closed_it(tmp_path, stop) -> None:
    path = tmp_path / "f"
    os.mkfifo(path)

    def write():
        with path.open("wb") as first, path.open("wb") as second:
            first.write(b"one\n")
            first.close()
            second.write(b"two")

    threading.Thread(target=write, daemon=True).start()
    found, _ = lines_of(path, stop)
    assert within_limit(lambda: list(found)) == ["one", "two"]


def test_a_file_that_grows_is_followed_over_truncation_and_replacement(tmp_path, stop) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    found, _ = lines_of(f"tail:{path}", stop)

    def add(data):
        with path.open("ab") as file:
            file.write(data)

    def read():
        assert next(found) == "one"
        add(b"o\nthree\n")
        assert [next(found), next(found)] == ["two", "three"]
        path.write_bytes(b"4\n")
        assert next(found) == "4"
        (tmp_path / "new").write_bytes(b"five\n")
        (tmp_path / "new").replace(path)
        assert next(found) == "five"
        stop.request()
        assert list(found) == []

    within_limit(read)


@pytest.mark.parametrize("scheme", ["unix-listen", "fifo", "tail", "unix"])
def test_a_stop_ends_each_of_them(tmp_path, stop, scheme) -> None:
    path, entered = tmp_path / "s", threading.Event()
    if scheme == "fifo":
        os.mkfifo(path)
        writer = os.open(path, os.O_RDWR)
        os.write(writer, b"one\n")
    elif scheme == "tail":
        path.write_bytes(b"one\n")
    server = socket.socket(socket.AF_UNIX)
    if scheme == "unix":
        server.bind(str(path))
        server.listen()
    text = str(path) if scheme == "fifo" else f"{scheme}:{path}"
    found, _ = lines_of(text, stop, reconnect=5)
    got = []

    def read():
        entered.set()
        got.extend(found)

    def request():
        assert entered.wait(20)
        stop.wait(0.05)
        stop.request()

    threading.Thread(target=request, daemon=True).start()
    within_limit(read, 20)
    server.close()
    if scheme == "fifo":
        os.close(writer)
    assert got == ([] if scheme.startswith("unix") else ["one"])


@pytest.mark.parametrize(("text", "want"), [
    ("tcp:box:80", Address("tcp", "tcp:box:80", host="box", port=80)),
    ("tcp:[::1]:80", Address("tcp", "tcp:[::1]:80", host="::1", port=80)),
    ("tcp-listen:127.0.0.1:0", Address("tcp-listen", "tcp-listen:127.0.0.1:0", host="127.0.0.1")),
    ("unix:/run/s", Address("unix", "unix:/run/s", Path("/run/s"))),
    ("tail:a:b", Address("tail", "tail:a:b", Path("a:b"))), ("rtsp://u:p@cam/1", Address("rtsp", "rtsp://u:p@cam/1")),
    ("https://cam/m", Address("http", "https://cam/m")), ("photos/", None), ("a:b", None), ("/dev/null", None),
    ("http:x", None),
])  # fmt: skip
def test_addresses_are_told_from_files(text, want) -> None:
    assert address_from_text(text) == want


@pytest.mark.parametrize(("text", "error", "message"), [
    ("tcp:box", UsageError, "'tcp:box' names no host and port (hint: for example tcp:127.0.0.1:9000)"),
    ("tcp:box:99999", UsageError, "names no host and port"),
    ("tcp::80", UsageError, "names no host and port"),
    ("unix:", UsageError, "'unix:' names no path"),
    ("rtsp://", UsageError, "'rtsp://' names no host"),
    ("http://[x", UsageError, "names no host"),
    ("tcp-listen:0.0.0.0:80", PolicyError, "listens on '0.0.0.0'"),
    ("tcp-listen:box:80", PolicyError, "(hint: tcp-listen:127.0.0.1:80)"),
])  # fmt: skip
def test_what_is_no_address_is_one_line(text, error, message) -> None:
    with pytest.raises(error) as caught:
        address_from_text(text)
    assert message in str(caught.value)
