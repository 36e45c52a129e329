# SPDX-License-Identifier: Apache-2.0
"""What clients of HTTP are promised: the protocol's paths, one line for an error, and that nobody holds up others."""

import contextlib
import copy
import gc
import http.client
import json
import random
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from byte_mutants import KINDS, mutant
from exposition_page import samples_of

from nndeploy.serve import body_budget, http_connections, http_server, open_files
from nndeploy.values.types import TensorType

INFER = "/v2/models/m/infer"
ONE = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
BODY = json.dumps({"inputs": [ONE]})


def post(body: str) -> bytes:
    """Returns a request for inference as it goes over the wire."""
    return f"POST {INFER} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Gated:
    """A function that waits until it may go on."""

    def __init__(self) -> None:
        self.gate, self.num_began = threading.Event(), 0

    def __call__(self, x: Any) -> dict[str, Any]:
        self.num_began += 1
        self.gate.wait()
        return {"y": x * np.float32(2)}


@pytest.fixture
def gated() -> Any:
    made = Gated()
    yield made
    made.gate.set()


def test_the_paths_of_the_protocol(serving) -> None:
    caller = serving()
    assert caller.ask("/v2/health/live") == (200, {"live": True})
    assert caller.ask("/v2/health/ready") == (200, {"ready": True, "live": True})
    status, about = caller.ask("/v2")
    assert (status, about["name"], about["extensions"]) == (200, "nndeploy", ["binary_tensor_data", "generate"])
    told = {
        "name": "m", "versions": ["1"], "platform": "nndeploy_bundle",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
    }  # fmt: skip
    for path in ("/v2/models/m", "/v2/models/m/versions/1"):
        assert caller.ask(path) == (200, told)
        assert caller.ask(f"{path}/ready") == (200, {"name": "m", "ready": True})
        status, answer = caller.ask(f"{path}/infer", BODY)
        assert (status, answer["outputs"][0]["data"]) == (200, [2, 4, 6])


def test_it_is_live_and_not_ready_while_it_loads(serving) -> None:
    caller = serving(loads=False)
    assert caller.ask("/v2/health/live")[0] == 200
    assert caller.ask("/v2/health/ready") == (503, {"ready": False, "live": True})
    assert caller.ask("/v2/models/m/ready") == (503, {"name": "m", "ready": False})
    status, answer, headers = caller.asked(INFER, BODY)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "not ready" in answer["error"]


def test_no_collection_of_garbage_looks_through_what_was_loaded(serving, fake_program) -> None:
    program = fake_program()
    caller = serving(program, loads=False)
    assert any(one is program for one in gc.get_objects())
    caller.service.load()
    assert not any(one is program for one in gc.get_objects())


@pytest.mark.parametrize(("path", "body", "headers", "status", "reason"), [
    ("/", None, {}, 404, "GET /: Not Found"),
    ("/v2/models/m/config", None, {}, 404, "Not Found"),
    ("/v2/models/n", None, {}, 404, "no model is called 'n' (hint: known: 'm')"),
    ("/v2/models/m/versions/2", None, {}, 404, "'m' has no version '2' (hint: it has '1')"),
    ("/v2/models/n/infer", BODY, {}, 404, "no model is called 'n'"),
    ("/v2", BODY, {}, 405, "POST /v2: Method Not Allowed"),
    (INFER, "{}", {}, 400, "input 'x' is missing"),
    (INFER, "{", {}, 400, "no JSON"),
    (INFER, json.dumps({"inputs": [ONE], "outputs": [{"name": "z"}]}), {}, 400, "no output is called 'z'"),
    (INFER, json.dumps({"inputs": [ONE | {"datatype": "FP64"}]}), {}, 400, "must be float32, got float64"),
    (INFER, json.dumps({"inputs": [ONE | {"shape": [0, 1 << 62, 1 << 62], "data": []}]}), {}, 400, "too large"),
    (INFER, BODY, {http_server.JSON_BYTES: "-1"}, 400, "is no number of bytes"),
    (INFER, BODY, {http_server.JSON_BYTES: "999999"}, 400, "the JSON should have 999999 bytes"),
    (INFER, BODY, {"Content-Encoding": "gzip"}, 415, "without Content-Encoding"),
    (INFER, "x" * 2000, {}, 413, "2000 bytes"),
    (INFER, BODY, {"Host": "evil.example"}, 403, "cross-origin"),
    (INFER, BODY, {"Origin": "https://evil.example"}, 403, "cross-origin"),
])  # fmt: skip
def test_every_refusal_is_one_line_with_its_status(serving, path, body, headers, status, reason) -> None:
    found, answer = serving(max_body=1000).ask(path, body, headers)
    assert (found, list(answer)) == (status, ["error"])
    assert reason in answer["error"]


def test_a_body_whose_length_nobody_said_has_the_same_limit(serving) -> None:
    caller = serving(max_body=1000)
    pieces = iter([b"x" * 600, b"x" * 600])
    status, answer = caller.ask(INFER, pieces)  # sent in chunks
    assert (status, "1000" in answer["error"]) == (413, True)
    assert caller.ask(INFER, iter([BODY.encode()]))[0] == 200


def test_binary_tensors_go_both_ways(serving) -> None:
    one = {key: ONE[key] for key in ("name", "shape", "datatype")} | {"parameters": {"binary_data_size": 12}}
    head = json.dumps({"id": "q", "inputs": [one], "parameters": {"binary_data_output": True}}).encode()
    raw = np.array([1, 2, 3], np.float32).tobytes()
    status, body, headers = serving().asked(INFER, head + raw, {http_server.JSON_BYTES: str(len(head))})
    json_bytes = int(headers[http_server.JSON_BYTES])
    assert (status, headers["Content-Type"]) == (200, "application/octet-stream")
    assert json.loads(body[:json_bytes])["id"] == "q"
    assert np.frombuffer(body[json_bytes:], np.float32).tolist() == [2, 4, 6]


def test_a_large_request_and_answer_come_whole(serving, fake_program) -> None:
    rows = 60
    x = np.arange(rows * 3000, dtype=np.float32).reshape(rows, 3000)
    kinds = {"x": TensorType("float32", ("N", 3000))}
    one = {"name": "x", "shape": x.shape, "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    head = json.dumps({"inputs": [one], "parameters": {"binary_data_output": True}}).encode()
    program = fake_program(inputs=kinds, outputs={"y": kinds["x"]})
    caller = serving(program, checks_goldens=False)
    _, body, headers = caller.asked(INFER, head + x.tobytes(), {http_server.JSON_BYTES: str(len(head))})
    found = np.frombuffer(body[int(headers[http_server.JSON_BYTES]) :], np.float32)
    assert (found == 2 * x.ravel()).all()


def test_a_token_is_asked_for_everywhere_but_health(serving, tmp_path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("a-token-of-some-length")
    caller = serving(token_file=path)
    assert caller.ask("/v2/health/ready")[0] == 200
    for where in ("/v2", "/v2/models/m", "/metrics", "/nowhere"):
        status, answer, headers = caller.asked(where, headers={"Authorization": "Bearer wrong"})
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "token" in answer["error"]
    good = {"Authorization": "Bearer a-token-of-some-length", "Host": "box.example"}
    assert caller.ask(INFER, BODY, good)[0] == 200


def test_a_full_queue_is_429_and_others_are_answered(serving, fake_program, gated, until) -> None:
    caller = serving(fake_program(gated), queue=1, checks_goldens=False)
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(caller.infer()[0])) for _ in range(2)]
    threads[0].start()
    until(lambda: gated.num_began == 1)
    threads[1].start()
    until(lambda: caller.service._figures.of("m")["waiting"] == 1)
    status, answer, headers = caller.asked(INFER, BODY)
    assert (status, headers["Retry-After"]) == (429, "1")
    assert "1 requests" in answer["error"]
    gated.gate.set()
    for thread in threads:
        thread.join()
    assert answers == [200, 200]


def test_a_request_has_a_time_limit_of_its_own_and_of_the_service(serving, fake_program, gated, until) -> None:
    caller = serving(fake_program(gated), checks_goldens=False, request_timeout=0.2)
    status, answer = caller.infer(parameters={"timeout": 20_000})
    assert (status, answer["error"]) == (504, "m: no answer within 20 ms")
    assert caller.infer()[0] == 504
    gated.gate.set()
    until(lambda: caller.infer()[0] == 200)


def test_a_client_that_goes_away_frees_its_place(serving, fake_program, gated, until) -> None:
    caller = serving(fake_program(gated), queue=1, checks_goldens=False)
    threading.Thread(target=caller.infer).start()
    until(lambda: gated.num_began == 1)
    request = post(BODY)
    with socket.create_connection(("127.0.0.1", caller.port)) as gone:
        gone.sendall(request)
        until(lambda: caller.service._figures.of("m")["waiting"] == 1)
    until(lambda: caller.figure("requests_total", outcome="cancelled") == 1)
    answers: list[int] = []
    client = threading.Thread(target=lambda: answers.append(caller.infer()[0]))
    client.start()
    until(lambda: caller.service._figures.of("m")["waiting"] == 1)
    gated.gate.set()
    client.join()
    assert answers == [200]
    assert gated.num_began == 2  # the one that went away was not run


def test_slow_clients_hold_up_nobody_and_lose_their_connection(serving) -> None:
    caller = serving(request_timeout=0.3)
    slow = [socket.create_connection(("127.0.0.1", caller.port)) for _ in range(20)]
    for one in slow:
        one.sendall(f"POST {INFER} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n{{".encode())
    assert caller.infer()[0] == 200
    for one in slow:
        one.settimeout(20)
        assert b"408 Request Timeout" in one.recv(4096)
        one.close()
    assert caller.infer()[0] == 200


def test_a_connection_that_asks_nothing_is_closed(serving, monkeypatch) -> None:
    monkeypatch.setattr(http_connections, "IDLE_SECONDS", 0.1)
    caller = serving()
    for start in (b"", b"GET /v2 HT", b"GET /v2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /v2 HTTP"):
        with socket.create_connection(("127.0.0.1", caller.port), timeout=20) as silent:
            silent.sendall(start)
            while silent.recv(4096):
                pass


def test_a_client_that_does_not_read_its_answer_loses_the_connection(serving, fake_program) -> None:
    kinds = {"x": TensorType("float32", (1, 3)), "y": TensorType("float32", (1, 4_000_000))}
    program = fake_program(lambda x: {"y": np.zeros((1, 4_000_000), np.float32)}, {"x": kinds["x"]}, {"y": kinds["y"]})
    caller = serving(program, checks_goldens=False, request_timeout=0.3)
    body = json.dumps({"inputs": [ONE], "parameters": {"binary_data_output": True}})
    with socket.create_connection(("127.0.0.1", caller.port), timeout=20) as silent:
        silent.sendall(
            f"POST {INFER} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        time.sleep(0.6)  # longer than it may take; how long decides nothing
        assert _received(silent) < 16_000_000


def _received(client: socket.socket) -> int:
    """Returns how many bytes come before the connection is closed, in whatever way."""
    received = 0
    with contextlib.suppress(ConnectionError):
        while piece := client.recv(1 << 20):
            received += len(piece)
    return received


def idle(caller: Any, number: int) -> list[socket.socket]:
    """Returns connections that ask nothing, some of them in the middle of a head."""
    held = [socket.create_connection(("127.0.0.1", caller.port), timeout=20) for _ in range(number)]
    for one in held[::2]:
        with contextlib.suppress(ConnectionError):  # it was closed already
            one.sendall(b"GET /v2 HTTP/1.1\r\nHost: ")
    return held


def test_whoever_has_been_idle_for_longest_makes_room(serving) -> None:
    caller = serving(max_connections=2)
    first = http.client.HTTPConnection("127.0.0.1", caller.port, timeout=20)
    first.request("GET", "/v2")
    first.getresponse().read()
    held = idle(caller, 2 + open_files.RESERVED - 1)
    assert caller.ask("/v2/health/live")[0] == 200  # which needed a place
    assert first.sock.recv(1) == b""
    first.close()
    held += idle(caller, 200)
    for path in ("/v2/health/ready", "/metrics", "/v2/models/m"):
        assert caller.ask(path)[0] == 200
    assert caller.infer()[0] == 200
    assert caller.figure("http_idle_closed_total") >= 200
    assert caller.figure("http_connections") <= 2 + open_files.RESERVED
    assert len(caller.said) == 1  # in a minute
    for one in held:
        one.close()


def test_beyond_the_requests_that_are_answered_at_once_only_probes_are(serving, fake_program, gated, until) -> None:
    caller = serving(fake_program(gated), max_connections=3, checks_goldens=False)
    slow = [socket.create_connection(("127.0.0.1", caller.port), timeout=20) for _ in range(3)]
    for one in slow:
        one.sendall(f"POST {INFER} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n{{".encode())
    until(lambda: caller.service._http_places._num_at_work == 3)
    held = idle(caller, 40)
    for path in ("/v2/health/live", "/v2/health/ready", "/metrics"):
        assert caller.ask(path)[0] == 200
    status, _, headers = caller.asked(INFER, BODY)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert caller.figure("requests_total", outcome="overload", code="UNAVAILABLE") == 1
    for one in (*slow, *held):
        one.close()
    gated.gate.set()
    until(lambda: caller.infer()[0] == 200)


def test_handshakes_that_never_end_make_room_too(serving, tls_files) -> None:
    certificate, key = tls_files
    caller = serving(tls_cert=certificate, tls_key=key, max_connections=2)
    held = [socket.create_connection(("127.0.0.1", caller.port), timeout=20) for _ in range(60)]
    context = ssl.create_default_context(cafile=certificate)
    connection = http.client.HTTPSConnection("127.0.0.1", caller.port, timeout=20, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/v2/health/ready")
        assert connection.getresponse().status == 200
    assert held[0].recv(100) == b""
    for one in held:
        one.close()


def test_bodies_in_memory_have_a_limit_together(serving, until, monkeypatch) -> None:
    monkeypatch.setattr(body_budget, "BODIES", 1)
    caller = serving(max_body=1 << 20)
    with socket.create_connection(("127.0.0.1", caller.port)) as slow:
        slow.sendall(f"POST {INFER} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n".encode())
        slow.sendall(bytes(900_000))
        until(lambda: caller.service._answering.budget._taken == 900_000)
        status, answer = caller.ask(INFER, bytes(200_000))
        assert (status, "bytes of requests are in memory" in answer["error"]) == (429, True)
    until(lambda: caller.ask(INFER, bytes(200_000))[0] == 400)


def test_many_clients_at_once_each_get_their_own_answer(serving, fake_program) -> None:
    caller = serving(fake_program(), batch=8, batch_delay_ms=1.0, workers=2, queue=1000)
    wrong: list[Any] = []

    def ask(number: int) -> None:
        for i in range(10):
            one = ONE | {"data": [number, i, 0]}
            status, answer = caller.ask(INFER, json.dumps({"inputs": [one]}))
            if status != 200 or answer["outputs"][0]["data"] != [2 * number, 2 * i, 0]:
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert caller.figure("requests_total", outcome="ok") == 160


TOKEN = "a-token-of-some-length"  # noqa: S105 - of the tests
AUTHORIZED = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
BINARY = {"name": "x", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}
HEAD = json.dumps({"inputs": [BINARY]})
REQUESTS = (
    f"POST {INFER} HTTP/1.1\r\n{AUTHORIZED}Content-Length: {len(BODY)}\r\n\r\n{BODY}",
    f"POST {INFER} HTTP/1.1\r\n{AUTHORIZED}Transfer-Encoding: chunked\r\n\r\n{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n",
    f"POST {INFER} HTTP/1.1\r\n{AUTHORIZED}{http_server.JSON_BYTES}: {len(HEAD)}\r\n"
    f"Content-Length: {len(HEAD) + 12}\r\n\r\n{HEAD}{'abcd' * 3}",
    f"GET /v2 HTTP/1.1\r\n{AUTHORIZED}\r\nGET /metrics HTTP/1.1\r\n{AUTHORIZED}Upgrade: websocket\r\n\r\n",
)  # fmt: skip
ODD = (
    None, True, -1, 0, 1 << 62, 1 << 64, 10**400, 1e39, "", "x" * 2000, "\ud800", [], [[1], 2], {}, {"a": 1},
    [0, 1 << 62, 1 << 62], [1 << 31] * 3, [1] * 100, "BYTES", "BOOL", "FP16", "INT8",
)  # fmt: skip


def odd_request(dice: random.Random) -> str:
    """Returns a request of which one to three values are others, or gone."""
    found = {"id": "q", "inputs": [copy.deepcopy(ONE)], "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
             "parameters": {"timeout": 100_000}}  # fmt: skip
    for _ in range(dice.randint(1, 3)):
        holder, key = dice.choice(list(places_of(found)))
        if dice.random() < 0.2:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(dice.choice(ODD))
    body = json.dumps(found)
    return f"POST {INFER} HTTP/1.1\r\n{AUTHORIZED}Content-Length: {len(body)}\r\n\r\n{body}"


def places_of(found: Any) -> Any:
    """Yields (container, key) of every value in plain data."""
    keys = list(found) if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
    for key in keys:
        yield found, key
        yield from places_of(found[key])


@pytest.fixture
def guarded(serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service that asks for a token, and waits for nobody long."""
    monkeypatch.setattr(http_connections, "IDLE_SECONDS", 0.1)
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(TOKEN)
    return serving(token_file=path, request_timeout=0.1)


def answered(caller: Any, data: bytes) -> bytes:
    """Returns how the answer to bytes begins; "" where the connection is closed."""
    with socket.create_connection(("127.0.0.1", caller.port), timeout=20) as client:
        client.sendall(data + b"\r\n\r\n" * 8)  # so that hardly any head is still to end
        with contextlib.suppress(ConnectionError):
            return client.recv(1 << 16)
    return b""


def test_what_clients_send_is_never_a_failure_of_the_service_nor_told(guarded, capsys, caplog) -> None:
    dice = random.Random(11)  # noqa: S311 - damage, not secrets
    for number in range(240):
        good = REQUESTS[number // 2 % len(REQUESTS)].encode()
        data = mutant(good, dice, dice.randrange(KINDS)) if number % 2 else odd_request(dice).encode()
        found = answered(guarded, data)
        assert found[9:12] != b"500", data
        assert TOKEN.encode() not in found
    out, err = capsys.readouterr()
    assert (out, err, caplog.text) == ("", "", "")
    assert TOKEN not in "".join(guarded.said)


@pytest.mark.parametrize("data", [
    f"GE\x7fT / HTTP/1.1\r\n{AUTHORIZED}\r\n", f"GET /v2 HTTP/9.9\r\n{AUTHORIZED}\r\n",
    f"GET /v2 HTTP/1.1\r\n{AUTHORIZED}\0: {TOKEN}\r\n\r\n", f"GET /v2 HTTP/1.1\r\n{AUTHORIZED}Content-Length: x\r\n",
    f"GET /v2 HTTP/1.1\r\nAuthorization: {TOKEN * 500}\r\n\r\n", f"Authorization: Bearer {TOKEN}\r\n\r\n",
    f"POST {INFER} HTTP/1.1\r\n{AUTHORIZED}Transfer-Encoding: chunked\r\n\r\n{TOKEN}\r\n", "\x16\x03\x01\x02\0" * 9,
])  # fmt: skip
def test_what_is_no_http_is_one_line_that_holds_none_of_it(guarded, capsys, caplog, data) -> None:
    for _ in range(20):
        found = answered(guarded, data.encode())
        head, _, body = found.partition(b"\r\n\r\n")
        assert head[9:12] == b"400"
        assert list(json.loads(body)) == ["error"]
        assert TOKEN.encode() not in found
    assert capsys.readouterr().err == caplog.text == ""
    assert len(guarded.said) <= 2  # one a second
    assert TOKEN not in "".join(guarded.said)
    page = samples_of(guarded.ask("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})[1].decode())
    rejected = {"protocol": "http", "outcome": "rejected", "code": "INVALID_ARGUMENT"}.items()
    counts = [value for (_, labels), value in page.items() if set(rejected) <= set(labels)]
    assert counts == [20]


def test_a_client_that_goes_away_while_it_is_answered_is_no_bug(serving, monkeypatch, capsys) -> None:
    async def is_gone(self: Any, data: bytes = b"") -> None:
        monkeypatch.undo()
        raise ConnectionResetError("Cannot write to closing transport")

    caller = serving()
    monkeypatch.setattr(http_server.web.Response, "write_eof", is_gone)
    with contextlib.suppress(ConnectionError, http.client.HTTPException):
        caller.infer()
    assert caller.figure("requests_total", outcome="cancelled") == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_bug_is_told_the_operator_and_not_the_client(serving, fake_program, capsys) -> None:
    def fails(x: Any) -> dict[str, Any]:
        raise ZeroDivisionError("secret")

    caller = serving(fake_program(fails), checks_goldens=False)
    assert caller.infer() == (500, {"error": "internal server error; see the server's log"})
    assert "ZeroDivisionError: secret" in capsys.readouterr().err


def test_stopping_ends_what_is_there_and_takes_no_more(serving, fake_program, gated, until) -> None:
    caller = serving(fake_program(gated), checks_goldens=False, grace=120.0)
    answers: list[int] = []
    client = threading.Thread(target=lambda: answers.append(caller.infer()[0]))
    client.start()
    until(lambda: gated.num_began == 1)
    ended: list[bool] = []
    stopping = threading.Thread(target=lambda: ended.append(caller.service.stop()))
    stopping.start()
    until(lambda: caller.ask("/v2/health/ready")[0] == 503)
    assert caller.ask("/v2/health/live")[0] == 200
    assert caller.infer()[0] == 503
    gated.gate.set()
    stopping.join()
    client.join()
    assert (answers, ended) == ([200], [True])


def test_from_the_moment_it_is_told_to_end_no_request_is_taken(serving, monkeypatch) -> None:
    caller = serving()
    monkeypatch.setattr(caller.service._answering, "is_ending", True)  # `stop` has not come to the queues yet
    assert caller.infer() == (503, {"error": "m: the server is shutting down"})


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_figures_are_a_page_of_prometheus_or_openmetrics(serving, accept) -> None:
    caller = serving()
    caller.infer()
    caller.ask(INFER, "{")
    caller.ask("/v2/models/n/infer", BODY)
    _, page, headers = caller.asked("/metrics", headers={"Accept": accept})
    assert headers["Content-Type"].startswith("application/openmetrics-text" if accept else "text/plain")
    found = samples_of(page.decode(), is_open_metrics=bool(accept))
    counts = {
        frozenset(labels): value for (name, labels), value in found.items() if name == "nndeploy_serve_requests_total"
    }
    wanted = (("m", "ok", "OK"), ("m", "rejected", "INVALID_ARGUMENT"), ("", "rejected", "NOT_FOUND"))
    assert counts == {
        frozenset({("model", model), ("protocol", "http"), ("outcome", outcome), ("code", code)}): 1
        for model, outcome, code in wanted
    }
    assert found["nndeploy_serve_request_seconds_count", frozenset({("model", "m")})] == 1
    assert 0 < time.time() - found["process_start_time_seconds", frozenset()] < 86_400
    assert found["process_resident_memory_bytes", frozenset()] > 1 << 20
    assert 0 < found["process_open_fds", frozenset()] < found["process_max_fds", frozenset()]
    assert found["process_cpu_seconds_total", frozenset()] > 0


def test_tls_is_spoken_where_there_is_a_certificate(serving, tls_files) -> None:
    certificate, key = tls_files
    caller = serving(tls_cert=certificate, tls_key=key)
    context = ssl.create_default_context(cafile=certificate)
    connection = http.client.HTTPSConnection("127.0.0.1", caller.port, timeout=20, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/v2/health/ready")
        assert connection.getresponse().status == 200
    with pytest.raises(ConnectionError):
        caller.ask("/v2")
