# SPDX-License-Identifier: Apache-2.0
"""What clients of gRPC are promised: the protocol's methods, a status for every error, deadlines, and a token."""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
import pytest
from byte_mutants import KINDS, mutant

from nndeploy.serve import body_budget
from nndeploy.serve.address import Address
from nndeploy.serve.grpc_server import NOT_SERVING, SERVICE_UNKNOWN, SERVING
from nndeploy.serve.messages import HEALTH, MESSAGES, METHODS, SERVICE

X = np.array([[1, 2, 3]], np.float32)
ANY_PORT = {"http": None, "grpc": Address("127.0.0.1", 0)}


class Client:
    """Calls methods of the service by name."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def __call__(self, method: str, message: Any = None, **how: Any) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}", MESSAGES[f"{method}Request"].SerializeToString,
            MESSAGES[f"{method}Response"].FromString,
        )  # fmt: skip
        return call(message or MESSAGES[f"{method}Request"](), timeout=how.pop("timeout", 30), **how)

    def health(self, method: str, service: str) -> Any:
        """Returns the answers of a health check as they come."""
        call = self._channel.unary_stream(
            f"/{HEALTH}/{method}", MESSAGES["HealthCheckRequest"].SerializeToString,
            MESSAGES["HealthCheckResponse"].FromString,
        )  # fmt: skip
        return call(MESSAGES["HealthCheckRequest"](service=service), timeout=30)

    def raw(self, method: str, *messages: bytes, **how: Any) -> Any:
        """Returns the answer to bytes that may be no message."""
        return self._channel.stream_unary(method)(iter(messages), **({"timeout": 30} | how))

    def stream(self, messages: list[Any]) -> list[Any]:
        call = self._channel.stream_stream(
            f"/{SERVICE}/ModelStreamInfer", MESSAGES["ModelInferRequest"].SerializeToString,
            MESSAGES["ModelStreamInferResponse"].FromString,
        )  # fmt: skip
        return list(call(iter(messages), timeout=30))


@contextlib.contextmanager
def refused(code: str, reason: str = "") -> Iterator[None]:
    """Expects an error with a status whose text holds the reason."""
    with pytest.raises(grpc.RpcError) as error:
        yield
    assert error.value.code().name == code
    assert reason in error.value.details()


def infer(x: np.ndarray = X, name: str = "m", **more: Any) -> Any:
    message = MESSAGES["ModelInferRequest"](model_name=name, raw_input_contents=[x.tobytes()], **more)
    message.inputs.add(name="x", datatype="FP32", shape=x.shape)
    return message


@pytest.fixture
def client_of(serving) -> Iterator[Callable[..., Client]]:
    with contextlib.ExitStack() as stack:

        def client(program: Any = None, **options: Any) -> Client:
            found = serving(program, **(ANY_PORT | options)).service
            return Client(stack.enter_context(grpc.insecure_channel(str(found.addresses["grpc"]))))

        yield client


def test_the_methods_of_the_protocol(client_of) -> None:
    client = client_of()
    assert client("ServerLive").live
    assert client("ServerReady").ready
    assert client("ModelReady", MESSAGES["ModelReadyRequest"](name="m", version="1")).ready
    assert client("ServerMetadata").name == "nndeploy"
    about = client("ModelMetadata", MESSAGES["ModelMetadataRequest"](name="m"))
    assert (about.platform, list(about.versions)) == ("nndeploy_bundle", ["1"])
    assert [(one.name, one.datatype, list(one.shape)) for one in about.inputs] == [("x", "FP32", [-1, 3])]
    answer = client("ModelInfer", infer(id="q"))
    assert (answer.model_name, answer.model_version, answer.id) == ("m", "1", "q")
    assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [2, 4, 6]


@pytest.mark.parametrize(("method", "message", "code", "reason"), [
    ("ModelInfer", infer(name="n"), "NOT_FOUND", "no model is called 'n'"),
    ("ModelInfer", infer(model_version="9"), "NOT_FOUND", "'m' has no version '9'"),
    ("ModelReady", MESSAGES["ModelReadyRequest"](name="n"), "NOT_FOUND", "no model is called 'n'"),
    ("ModelInfer", infer(np.ones((1, 4), np.float32)), "INVALID_ARGUMENT", "axis 1 is 4 instead of 3"),
    ("ModelInfer", infer(np.ones((1, 90000), np.float32)), "RESOURCE_EXHAUSTED", "larger than max"),
])  # fmt: skip
def test_an_error_is_a_status_with_one_line(client_of, method, message, code, reason) -> None:
    client = client_of(max_body=1000)
    with refused(code, reason):
        client(method, message)


def test_a_call_whose_deadline_passes_is_never_run(serving, fake_program, until) -> None:
    gate, began = threading.Event(), list[float]()

    def slow(x: Any) -> dict[str, Any]:
        began.append(float(x[0, 0]))
        gate.wait()
        return {"y": x}

    service = serving(fake_program(slow), checks_goldens=False, **ANY_PORT).service
    with grpc.insecure_channel(str(service.addresses["grpc"])) as channel:
        client = Client(channel)
        first = threading.Thread(target=client, args=("ModelInfer", infer(X)))
        first.start()
        until(lambda: began == [1])
        with refused("DEADLINE_EXCEEDED"):
            client("ModelInfer", infer(X * 2), timeout=0.05)
        until(lambda: service._figures.of("m")["grpc", "CANCELLED"] == 1)
        gate.set()
        first.join()
        client("ModelInfer", infer(X * 3))
    assert began == [1, 3]


def test_the_service_has_a_time_limit_of_its_own(client_of, fake_program) -> None:
    gate = threading.Event()

    def slow(x: Any) -> dict[str, Any]:
        gate.wait()
        return {"y": x}

    try:
        with refused("DEADLINE_EXCEEDED", "no answer within 50 ms"):
            client_of(fake_program(slow), checks_goldens=False, request_timeout=0.05)("ModelInfer", infer())
    finally:
        gate.set()


def test_messages_in_memory_have_a_limit_together(client_of, monkeypatch) -> None:
    monkeypatch.setattr(body_budget, "BODIES", 0)
    with refused("RESOURCE_EXHAUSTED", "bytes of requests are in memory"):
        client_of()("ModelInfer", infer())


def test_closing_gives_the_last_answers(serving, fake_program, until) -> None:
    gate, began = threading.Event(), threading.Event()

    def slow(x: Any) -> dict[str, Any]:
        began.set()
        gate.wait()
        return {"y": x}

    service = serving(fake_program(slow), checks_goldens=False, grace=20.0, **ANY_PORT).service
    with grpc.insecure_channel(str(service.addresses["grpc"])) as channel:
        answers: list[str] = []
        call = Client(channel)
        clients = [
            threading.Thread(target=lambda i=i: answers.append(call("ModelInfer", infer(id=str(i))).id))
            for i in range(4)
        ]
        for client in clients:
            client.start()
        until(lambda: began.is_set() and service._figures.of("m")["waiting"] == 3)
        closing = threading.Thread(target=service.__exit__, args=(None, None, None))
        closing.start()
        until(lambda: not service.is_ready)
        gate.set()
        for thread in (closing, *clients):
            thread.join()
        assert sorted(answers) == ["0", "1", "2", "3"]


def test_a_stream_is_answered_in_order_and_goes_on_after_an_error(client_of) -> None:
    answers = client_of().stream([infer(X * i, "m" if i != 1 else "n", id=str(i)) for i in range(3)])
    assert [answer.infer_response.id for answer in answers] == ["0", "1", "2"]
    assert [bool(answer.error_message) for answer in answers] == [False, True, False]
    assert np.frombuffer(answers[2].infer_response.raw_output_contents[0], np.float32).tolist() == [4, 8, 12]


def test_a_token_is_asked_for(client_of, tmp_path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("a-token-of-some-length")
    client = client_of(token_file=path)
    assert client("ServerReady").ready
    for method in ("ServerMetadata", "ModelInfer"):
        with refused("UNAUTHENTICATED"):
            client(method, metadata=[("authorization", "Bearer wrong")])
    with refused("UNAUTHENTICATED"):
        client.stream([infer()])
    good = [("authorization", "Bearer a-token-of-some-length")]
    assert client("ModelInfer", infer(), metadata=good).outputs


def test_a_port_is_not_shared_with_another_service(serving, client_of) -> None:
    from nndeploy.errors import CannotCreateError

    first = serving(**ANY_PORT).service
    with pytest.raises(CannotCreateError, match="in use"):
        serving(http=None, grpc=first.addresses["grpc"])


def test_tls_is_spoken_where_there_is_a_certificate(serving, tls_files) -> None:
    certificate, key = tls_files
    found = serving(**ANY_PORT, tls_cert=certificate, tls_key=key).service.addresses["grpc"]
    trusted = grpc.ssl_channel_credentials(certificate.read_bytes())
    with grpc.secure_channel(str(found), trusted) as channel:
        assert Client(channel)("ServerReady").ready
    with grpc.insecure_channel(str(found)) as channel, pytest.raises(grpc.RpcError):
        Client(channel)("ServerReady", timeout=5)


@pytest.mark.parametrize("loads", [False, True])
def test_health_is_told_as_its_protocol_says(client_of, loads, tmp_path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("a-token-of-some-length")  # which health does not ask for
    client = client_of(loads=loads, token_file=path)
    for service in ("", SERVICE, "m"):
        assert [one.status for one in client.health("Check", service)] == [SERVING if loads else NOT_SERVING]
    with refused("NOT_FOUND"):
        list(client.health("Check", "n"))
    assert next(client.health("Watch", "n")).status == SERVICE_UNKNOWN


def test_who_watches_health_is_told_of_changes(serving) -> None:
    service = serving(loads=False, **ANY_PORT).service
    with grpc.insecure_channel(str(service.addresses["grpc"])) as channel:
        watched = Client(channel).health("Watch", "m")
        assert next(watched).status == NOT_SERVING
        service.load()
        assert next(watched).status == SERVING
        service._answering.is_ending = True
        assert next(watched).status == NOT_SERVING
        service._answering.is_ending = False


def test_health_is_told_however_many_calls_there_are(serving, until) -> None:
    service = serving(**ANY_PORT, max_connections=2, request_timeout=20.0).service
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(grpc.insecure_channel(str(service.addresses["grpc"]))) for _ in range(3)]
        never = threading.Event()
        for channel in channels[:2]:
            stack.callback(channel.stream_unary(f"/{SERVICE}/ModelInfer").future(_waits(never)).cancel)
        until(lambda: service._grpc._num_at_work == 2)
        client = Client(channels[2])
        for _ in range(3):
            assert client("ServerReady").ready
            assert next(client.health("Check", "")).status == SERVING
        for call in (lambda: client("ModelInfer", infer()), lambda: next(client.health("Watch", ""))):
            with refused("RESOURCE_EXHAUSTED"):
                call()
        never.set()


def _waits(event: threading.Event) -> Iterator[bytes]:
    event.wait()
    yield from ()


@pytest.mark.parametrize("method", [*(f"/{SERVICE}/{one}" for one in METHODS), f"/{HEALTH}/Check", f"/{HEALTH}/Watch"])
def test_bytes_that_are_no_message_are_the_clients_fault(client_of, capsys, method) -> None:
    client = client_of(request_timeout=0.3)
    for messages in ((b"\xff\xff\xff",), (b"\x0a\xff\x01",), ()):
        with refused("INVALID_ARGUMENT"):
            client.raw(method, *messages)
    never = threading.Event()
    with refused("DEADLINE_EXCEEDED"):
        client._channel.stream_unary(method)(_waits(never), timeout=30)
    never.set()
    assert capsys.readouterr().err == ""


def odd_message(dice: random.Random) -> bytes:
    """Returns a request for inference with a field or two that fit ill."""
    message = infer(model_version=dice.choice(("", "1", "2")))
    for _ in range(dice.randint(1, 2)):
        one = dice.choice(message.inputs) if message.inputs else message.inputs.add()
        match dice.randrange(9):
            case 0:
                one.shape[:] = dice.choice(([], [-1], [0, 1 << 62, 1 << 62], [1 << 62] * 3, [1] * 100, [3]))
            case 1:
                one.datatype = dice.choice(("", "FP16", "BYTES", "BOOL", "UINT64", "fp32"))
            case 2:
                one.contents.fp32_contents.extend([1.0] * dice.randint(0, 4))
            case 3:
                one.contents.int64_contents.append(-(1 << 63))
            case 4:
                del message.raw_input_contents[:]
            case 5:
                message.raw_input_contents[:] = [bytes(dice.randint(0, 20))] * dice.randint(0, 3)
            case 6:
                message.parameters["timeout"].int64_param = dice.choice((-1, 5, 1 << 62))
            case 7:
                message.outputs.add(name=dice.choice(("", "y", "z")))
            case _:
                message.inputs.add(name=dice.choice(("", "x", "y")))
    return bytes(message.SerializeToString())


def test_what_clients_send_is_never_a_failure_of_the_service(client_of, capsys, caplog) -> None:
    client, dice = client_of(), random.Random(7)  # noqa: S311 - damage, not secrets
    good, codes = infer().SerializeToString(), Counter[str]()
    for number in range(400):
        data = mutant(good, dice, dice.randrange(KINDS)) if number % 2 else odd_message(dice)
        for method in ("ModelInfer", "ModelStreamInfer"):
            try:
                client.raw(f"/{SERVICE}/{method}", data)
                codes["OK"] += 1
            except grpc.RpcError as err:
                codes[err.code().name] += 1
    assert set(codes) <= {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "DEADLINE_EXCEEDED"}
    assert codes["INVALID_ARGUMENT"] > 100
    assert (capsys.readouterr().err, caplog.text) == ("", "")
