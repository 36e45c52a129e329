# SPDX-License-Identifier: Apache-2.0
"""`nndeploy serve` as a process: real bundles, signals, installed names, and the public client."""

import contextlib
import http.client
import io
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served_commands import SLOW, ask, doubled, page, until
from tests_flow_bundles import write_double, write_picture

from nndeploy.cli.main import run_command

pytest.importorskip("aiohttp")
FEW_FILES = [
    sys.executable, "-c",
    "import resource\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
    "from nndeploy.cli.main import main\n"
    "main()", "serve",
]  # fmt: skip


def test_a_bundle_is_served_until_a_signal(served) -> None:
    write_double(Path("m.nnd"))
    write_picture(Path("p.nnd"))
    service = served("m.nnd", "other=p.nnd", "--no-check")
    http_at, grpc_at = service.until("listening: http"), service.until("listening: grpc")
    assert service.until("ready:") == "m, other"
    assert http_at != grpc_at
    status, answer = ask(http_at, "/v2/models/m/infer", doubled(2.5))
    assert (status, answer["outputs"][0]["data"]) == (200, [5, 5, 5])
    assert ask(http_at, "/v2/models/other")[1]["inputs"][0]["shape"] == [-1, 1, 2, 3]
    service.process.send_signal(signal.SIGTERM)
    assert service.ends() == (143, "")


def test_requests_that_are_there_end_after_the_first_signal(served) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", command=SLOW)
    at = service.until("listening: http")
    service.until("ready:")
    answers: list[Any] = []
    client = threading.Thread(target=lambda: answers.append(ask(at, "/v2/models/m/infer", doubled(100.7))))
    client.start()
    until(lambda: 'nndeploy_serve_running{model="m"} 1' in page(at))
    service.process.send_signal(signal.SIGINT)
    client.join()
    assert answers[0][0] == 200
    assert service.ends()[0] == 130


def test_the_second_signal_ends_at_once(served) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", "--grace", "600", "--request-timeout", "600", command=SLOW)
    at = service.until("listening: http")
    service.until("ready:")
    threading.Thread(target=_asked, args=(at, doubled(600)), daemon=True).start()
    until(lambda: 'nndeploy_serve_running{model="m"} 1' in page(at))
    began = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    until(lambda: ask(at, "/v2/health/ready")[0] == 503)
    service.process.send_signal(signal.SIGTERM)
    assert service.ends()[0] == 143
    assert time.monotonic() - began < 60  # where the call sleeps for 500 s


def _asked(at: str, body: Any) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        ask(at, "/v2/models/m/infer", body)


@pytest.mark.parametrize(("arguments", "code", "reason"), [
    (["m.nnd", "--http", "0.0.0.0:0"], 2, "can be reached from other machines, without TLS and a token"),
    (["m.nnd", "--grpc", "m"], 2, "--grpc: 'm' is no address"),
    (["m.nnd", "m=m.nnd"], 2, "two bundles are called 'm'"),
    (["m.nnd", "--follow"], 2, "only installed bundles are followed"),
    ([], 2, "Missing argument"),
    (["none.nnd", "--http", "127.0.0.1:0", "--grpc", "none"], 66, "none.nnd: no such bundle"),
    (["wrong.nnd", "--http", "127.0.0.1:0", "--grpc", "none"], 1, "wrong.nnd: 1 of 1 outputs of its goldens"),
    (["none@"], 66, "nothing is installed as 'none'"),
    (["m.nnd", "--token-file", "m.nnd", "--grpc", "none"], 77, "(hint: chmod 600"),
])  # fmt: skip
def test_what_cannot_be_served_is_one_line(tmp_path, monkeypatch, capsys, arguments, code, reason) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    write_double(tmp_path / "m.nnd").chmod(0o644)
    write_double(tmp_path / "wrong.nnd", golden=3.0)
    assert run_command(["serve", *arguments]) == code
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert reason in errors[0]


def test_it_tells_the_service_manager_and_leaves_no_socket_in_the_file_system(served, manager, tmp_path) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", "--http", "unix:h.sock", "--grpc", "none")
    assert service.until("listening: http") == f"unix:{tmp_path}/h.sock"
    assert manager.recv(100) == b"READY=1"
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("h.sock")
        client.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    assert manager.recv(100) == b"WATCHDOG=1"
    service.process.send_signal(signal.SIGTERM)
    said = [manager.recv(100)]
    while said[-1] == b"WATCHDOG=1":
        said.append(manager.recv(100))
    assert said[-1] == b"STOPPING=1"
    assert service.ends()[0] == 143
    assert not os.path.lexists("h.sock")


def test_an_installed_bundle_is_followed(served) -> None:
    write_double(Path("one.nnd"))
    write_double(Path("two.nnd"), members={"note": b"two"})
    write_double(Path("wrong.nnd"), golden=3.0, members={"note": b"three"})
    assert run_command(["install", "faces", "one.nnd"]) == 0
    service = served("faces@", "--follow")
    at = service.until("listening: http")
    assert service.until("ready:") == "faces"

    def version() -> str:
        status, answer = ask(at, "/v2/models/faces/infer", doubled(1))
        assert status == 200
        return str(answer["model_version"])

    first = version()
    assert run_command(["install", "faces", "two.nnd"]) == 0
    until(lambda: version() != first)
    second = version()
    assert run_command(["rollback", "faces"]) == 0
    until(lambda: version() == first)
    assert second != first
    assert run_command(["uninstall", "faces"]) == 0
    assert version() == first  # which is served on
    service.process.send_signal(signal.SIGTERM)
    assert service.ends()[0] == 143


PICTURES = """
[source]
kind = "images"

[[level]]
[[level.pipeline]]
name = "read"
model = "p.nnd"
inputs = { image = "tensor" }
  [[level.pipeline.loader]]
  steps = [
    { use = "decode" },
    { use = "resize", width = 3, height = 2, out = ["small", "transform"] },
    { use = "normalise", in = ["small"], std = [255.0] },
    { use = "layout", channels = "L" },
  ]
  [[level.pipeline.post]]
  steps = [{ use = "top-k", in = ["y"], k = 1, labels = ["dark", "bright"] }]
"""


def test_a_pipeline_takes_a_picture_and_gives_what_a_run_writes(served) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    write_picture(Path("p.nnd"))
    Path("p.toml").write_text(PICTURES)
    with io.BytesIO() as file:
        image.new("L", (3, 2), 255).save(file, "png")
        picture = file.getvalue()
    Path("a.png").write_bytes(picture)
    assert run_command(["run", "--pipeline", "p.toml", "--input", "a.png", "--output", "out.jsonl"]) == 0
    wanted = json.loads(Path("out.jsonl").read_text())["outputs"]
    service = served("p.toml", "--no-check")
    at = service.until("listening: http")
    assert service.until("ready:") == "p"
    about = ask(at, "/v2/models/p")[1]
    assert about["platform"] == "nndeploy_pipeline"
    assert about["inputs"] == [{"name": "data", "datatype": "BYTES", "shape": [1]}]
    raw = len(picture).to_bytes(4, "little") + picture
    size = {"binary_data_size": len(raw)}
    one = {"name": "data", "datatype": "BYTES", "shape": [1], "parameters": size}
    head = json.dumps({"inputs": [one]}).encode()
    status, answer = ask(at, "/v2/models/p/infer", head + raw, {"Inference-Header-Content-Length": str(len(head))})
    assert status == 200
    assert {one["name"]: json.loads(one["data"][0]) for one in answer["outputs"]} == wanted
    assert wanted["labels"] == ["bright"]


def test_the_public_client_gets_what_a_run_gives(served) -> None:
    over_http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    over_grpc = pytest.importorskip("tritonclient.grpc", reason="tritonclient[grpc] is not installed")
    write_double(Path("m.nnd"))
    service = served("m.nnd", "--batch", "4")
    addresses = service.until("listening: http"), service.until("listening: grpc")
    service.until("ready:")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for library, address in zip((over_http, over_grpc), addresses, strict=True):
        with library.InferenceServerClient(address) as client:
            assert client.is_server_live()
            assert client.is_server_ready()
            assert client.is_model_ready("m", "1")
            one = library.InferInput("image", x.shape, "FP32")
            one.set_data_from_numpy(x)
            wanted = [library.InferRequestedOutput("y")]
            found = client.infer("m", [one], outputs=wanted, request_id="7", timeout=20_000_000)
            assert found.as_numpy("y").tolist() == (2 * x).tolist()
            with pytest.raises(Exception, match="no model is called 'n'"):
                client.infer("n", [one])


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 3000:
        pytest.skip(f"this process may have {hard} files open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_probes_are_answered_whatever_a_thousand_idle_connections_do(served) -> None:
    write_double(Path("m.nnd"))
    service = served("m.nnd", command=FEW_FILES)
    began = time.monotonic()
    http_at, grpc_at = service.until("listening: http"), service.until("listening: grpc")
    service.until("ready:")
    with contextlib.ExitStack() as stack:
        for number in range(1000):
            for address in (grpc_at, http_at):
                host, port = address.rsplit(":", 1)
                stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            if number % 100 == 99:
                assert ask(http_at, "/v2/health/ready")[0] == 200
                assert "process_open_fds" in page(http_at)
        assert ask(http_at, "/v2/models/m/infer", doubled(2.5))[0] == 200
    service.process.send_signal(signal.SIGTERM)
    code, errors = service.ends()
    few, *crowd = errors.splitlines()
    assert (code, "ulimit -n" in few) == (143, True)
    assert 1 <= len(crowd) <= 1 + (time.monotonic() - began) / 60, errors
