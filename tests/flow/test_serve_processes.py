# SPDX-License-Identifier: Apache-2.0
"""`nndeploy serve --processes`: one service by several processes, whichever of them ends, and however it ends."""

import contextlib
import http.client
import json
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from exposition_page import samples_of
from served_commands import SLOW, Served, ask, doubled, page, until
from tests_flow_bundles import write_double, write_wide

from nndeploy.cli.main import run_command

pytest.importorskip("aiohttp")
TWO = ("--processes", "2")
WIDE_MB = 64


class Client:
    """A connection that stays, of which it is known who answers."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        assert self.infer() == 200

    def infer(self, value: float = 2.5) -> int:
        self.connection.request("POST", "/v2/models/m/infer", json.dumps(doubled(value)))
        answer = self.connection.getresponse()
        answer.read()
        return answer.status

    def is_answered_by(self, process: psutil.Process) -> bool:
        own = self.connection.sock.getsockname()
        return any(one.raddr and tuple(one.raddr) == own for one in process.net_connections("tcp"))


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    made: list[Client] = []
    yield made
    for one in made:
        one.connection.close()


def workers_of(service: Served) -> list[psutil.Process]:
    return psutil.Process(service.process.pid).children()


def figure(at: str, name: str, **labels: str) -> float:
    """Returns the sum of the samples of a figure that have these labels."""
    samples = samples_of(page(at)).items()
    return sum(value for (one, pairs), value in samples if one == name and labels.items() <= set(pairs))


def test_who_is_killed_is_replaced_and_the_others_answer_on(served, clients) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", *TWO)
    at = service.until("listening: http")
    assert service.until("ready:") == "m"
    first, second = workers_of(service)
    while {one.is_answered_by(first) for one in clients} != {True, False}:
        clients.append(Client(at))
    stay = [one for one in clients if one.is_answered_by(second)]
    num_asked = len(clients)
    first.kill()
    for one in stay * 5:
        assert one.infer() == 200
    until(lambda: figure(at, "nndeploy_serve_process_restarts_total") == 1)
    until(lambda: figure(at, "nndeploy_serve_processes") == 2)
    assert ask(at, "/v2/health/ready")[0] == 200
    assert len(workers_of(service)) == 2
    assert figure(at, "nndeploy_serve_requests_total", code="OK") == num_asked + 5 * len(stay)  # also the one's killed
    service.process.send_signal(signal.SIGTERM)
    code, errors = service.ends()
    assert code == 143
    assert f"worker process 0 ({first.pid}) crashed (SIGKILL)" in errors


def test_figures_are_those_of_all_processes(served, clients) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", *TWO)
    at = service.until("listening: http")
    service.until("ready:")
    processes = workers_of(service)
    while not all(any(one.is_answered_by(process) for one in clients) for process in processes):
        clients.append(Client(at))
    for _ in range(4):  # whoever gives the page
        assert figure(at, "nndeploy_serve_requests_total", model="m", code="OK") == len(clients)
        assert figure(at, "nndeploy_serve_request_seconds_count", model="m") == len(clients)
        assert figure(at, "nndeploy_serve_calls_total", model="m") == len(clients)
        until(lambda: figure(at, "nndeploy_serve_http_connections") == len(clients) + 1)
        assert figure(at, "nndeploy_serve_ready", model="m") == 1
    together = sum(one.memory_full_info().pss for one in (psutil.Process(service.process.pid), *processes))
    assert figure(at, "process_resident_memory_bytes") == pytest.approx(together, rel=0.2)


def test_requests_that_are_there_end_after_the_first_signal(served, clients) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", *TWO, "--workers", "8", command=SLOW)
    at = service.until("listening: http")
    service.until("ready:")
    processes = workers_of(service)
    while not all(any(one.is_answered_by(process) for one in clients) for process in processes):
        clients.append(Client(at))
    answers: list[int] = []
    threads = [threading.Thread(target=lambda one=one: answers.append(one.infer(100.7))) for one in clients]
    for thread in threads:
        thread.start()
    until(lambda: figure(at, "nndeploy_serve_running") == len(clients))
    for process in (*processes, service.process):  # as a service manager does, which signals all
        process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert answers == [200] * len(clients)
    assert service.ends() == (143, "nndeploy: m: each process loads its own copy of the weights (onnxruntime)\n")
    host, port = at.rsplit(":", 1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=10)


def test_no_process_outlives_the_first_whatever_it_is_at(served, clients) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", *TWO, "--grace", "600", "--request-timeout", "600", command=SLOW)
    at = service.until("listening: http")
    service.until("ready:")
    clients.append(Client(at))
    processes = workers_of(service)
    threading.Thread(target=_asked, args=(clients[0],), daemon=True).start()
    until(lambda: figure(at, "nndeploy_serve_running") == 1)
    service.process.kill()
    gone, alive = psutil.wait_procs(processes, timeout=30)
    assert (len(gone), alive) == (2, [])


def _asked(client: Client) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        client.infer(600)


def test_a_call_that_hangs_ends_its_process_alone(served, manager) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", *TWO, command=SLOW)
    at = service.until("listening: http")
    assert [manager.recv(100) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask(at, "/v2/models/m/infer", doubled(700))
    until(lambda: figure(at, "nndeploy_serve_process_restarts_total") == 1)  # before it is seen there are two as well
    until(lambda: figure(at, "nndeploy_serve_processes") == 2)
    assert ask(at, "/v2/models/m/infer", doubled(2.5))[0] == 200
    assert manager.recv(100) == b"WATCHDOG=1"


def test_processes_have_the_weights_of_our_own_kernels_once(served) -> None:
    write_wide(Path("little.nnd"), size=4)
    write_wide(Path("wide.nnd"), size=4096)
    taken = {}
    for name in ("little.nnd", "wide.nnd"):
        service = served(name, *TWO, "--no-check", "--grpc", "none")
        at = service.until("listening: http")
        service.until("ready:")
        if name == "wide.nnd":
            ones = {"name": "image", "shape": [1, 4096], "datatype": "FP32", "data": [1.0] * 4096}
            for _ in range(8):
                status, answer = ask(at, "/v2/models/wide/infer", {"inputs": [ones]})
                assert (status, set(answer["outputs"][0]["data"])) == (200, {4096.0})
        taken[name] = figure(at, "process_resident_memory_bytes") / (1 << 20)
    assert 0.9 * WIDE_MB < taken["wide.nnd"] - taken["little.nnd"] < 1.4 * WIDE_MB


def test_both_processes_answer_over_grpc_and_their_port_is_theirs(served, capsys) -> None:
    grpc = pytest.importorskip("grpc")
    messages = pytest.importorskip("nndeploy.serve.messages")
    write_double(Path("m.nnd"))
    service = served("m.nnd", *TWO)
    at = service.until("listening: grpc")
    service.until("ready:")
    message = messages.MESSAGES["ServerReadyRequest"]().SerializeToString()
    with contextlib.ExitStack() as stack:
        for number in range(8):
            channel = stack.enter_context(grpc.insecure_channel(at, [("grpc.use_local_subchannel_pool", number + 1)]))
            answer = channel.unary_unary(f"/{messages.SERVICE}/ServerReady")(message, timeout=60)
            assert messages.MESSAGES["ServerReadyResponse"].FromString(answer).ready
    for more in ((), TWO):
        assert run_command(["serve", "m.nnd", "--http", "none", "--grpc", at, *more]) == 73
    assert capsys.readouterr().err.count("cannot listen") == 2


def test_each_process_follows_an_installed_name_also_one_that_comes_later(served) -> None:
    for number in range(3):
        write_double(Path(f"{number}.nnd"), members={"note": str(number).encode()})
    assert run_command(["install", "m", "0.nnd"]) == 0
    service = served("m@", "--follow", *TWO)
    at = service.until("listening: http")
    assert service.until("ready:") == "m"

    def versions() -> set[str]:
        return {ask(at, "/v2/models/m/infer", doubled(1))[1]["model_version"] for _ in range(6)}

    before = versions()
    for number in (1, 2):  # the first one's file is then gone
        assert run_command(["install", "m", f"{number}.nnd"]) == 0
    until(lambda: not versions() & before)
    workers_of(service)[0].kill()
    until(lambda: figure(at, "nndeploy_serve_process_restarts_total") == 1)
    until(lambda: figure(at, "nndeploy_serve_processes") == 2)
    until(lambda: len(versions()) == 1)
    assert not versions() & before


SESSIONS = """
[source]
kind = "json-lines"
fields = ["who"]

[[level]]
[[level.pipeline]]
name = "read"
model = "m.nnd"
session = "who"
carry = { y = "image" }
"""


@pytest.mark.parametrize(("arguments", "code", "reason"), [
    (["wrong.nnd"], 1, "wrong.nnd: 1 of 1 outputs of its goldens differ"),
    (["s.toml"], 2, "keeps state of sessions"),
    (["m.nnd", "--grpc", "unix:g.sock"], 2, "cannot share a gRPC socket"),
])  # fmt: skip
def test_what_several_processes_cannot_serve_is_one_line(served, arguments: list[str], code: int, reason: str) -> None:
    write_double(Path("m.nnd"))
    write_double(Path("wrong.nnd"), golden=3.0)
    Path("s.toml").write_text(SESSIONS)
    ended, errors = served(*arguments, *TWO).ends()
    *others, line = errors.splitlines()
    assert (ended, reason in line) == (code, True), errors
    assert all("own copy of the weights" in one for one in others)
