# SPDX-License-Identifier: Apache-2.0
"""Triton's server and KServe's own with a model in ONNX Runtime, as engines of a race; `make servers` installs them.

Both run in an environment of their own, build/servers-env, and are asked by the client that asks the service. Of Triton
there is the server that nvidia-pytriton's wheel holds, whose only backend is the one for Python: the model runs in a
process beside the server, and values cross by shared memory. KServe's is the server of the package `kserve`, in Python
like ours. Each has a model of a few lines (`rival_server_*.py`) and its other settings as they come.
"""

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

import onnxruntime
import serve_engines
from interleaved import Array, EngineRefusedError, Ready

from nndeploy.bundle.manifest import NamedType
from nndeploy.runtime.program import load_bundle
from nndeploy.serve.datatypes import tensor_of

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / "build" / "servers-env"
START_SECONDS = 60.0
LOOK_SECONDS = 0.1


def in_process(inputs: Mapping[str, Array], bundle: str, model: str, clients: int = 1) -> Ready:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    outputs = [one.name for one in session.get_outputs()]
    given = dict(inputs)
    return Ready(lambda: session.run(outputs, given), list)


def triton(inputs: Mapping[str, Array], bundle: str, model: str, protocol: str, clients: int = 1) -> Ready:
    """Asks Triton; of the bundle it takes the names and types of the model's inputs and outputs."""
    packages = _packages()
    server = packages / "pytriton" / "tritonserver"
    folder = Path(tempfile.mkdtemp(prefix="triton-"))
    backend = folder / "backends" / "python"
    shutil.copytree(server / "backends" / "python", backend)
    version = packages.parent.name.removeprefix("python")
    shutil.copy(server / "python_backend_stubs" / version / "triton_python_backend_stub", backend)
    code = folder / "models" / "m" / "1" / "model.py"
    code.parent.mkdir(parents=True)
    shutil.copy(HERE / "rival_server_triton.py", code)
    code.parents[1].joinpath("config.pbtxt").write_text(_triton_config(bundle))
    http, grpc = _free_port(), _free_port()
    command = [
        str(server / "bin" / "tritonserver"), f"--model-repository={folder / 'models'}",
        f"--backend-directory={folder / 'backends'}", "--allow-metrics=false",
        "--http-address=127.0.0.1", f"--http-port={http}", "--grpc-address=127.0.0.1", f"--grpc-port={grpc}",
    ]  # fmt: skip
    libraries = {"LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs"), "PACKAGES": str(packages), "MODEL": model}
    _start("Triton", command, libraries, folder, http)
    return _asked(inputs, protocol, http, grpc, clients)


def kserve(inputs: Mapping[str, Array], bundle: str, model: str, protocol: str, clients: int = 1) -> Ready:
    """Asks KServe's server, which listens to all addresses of the machine."""
    http, grpc = _free_port(), _free_port()
    command = [str(ENVIRONMENT / "bin" / "python"), str(HERE / "rival_server_kserve.py"), model, str(http), str(grpc)]
    _start("KServe", command, {}, Path(tempfile.mkdtemp(prefix="kserve-")), http)
    return _asked(inputs, protocol, http, grpc, clients)


def versions() -> dict[str, str]:
    """Returns the versions of what is compared, by names that can stand in a text."""
    found = {one.name: one.version for one in distributions(path=[str(_packages())])}
    return {name.rpartition("-")[2]: found[name] for name in ("onnxruntime", "nvidia-pytriton", "kserve")}


def _packages() -> Path:
    (folder,) = (ENVIRONMENT / "lib").glob("python3.*/site-packages")
    return folder


def _triton_config(bundle: str) -> str:
    with load_bundle(bundle) as program:
        told = {"input": program.inputs, "output": program.outputs}
    lines = ['backend: "python"', "instance_group [ { count: 1 kind: KIND_CPU } ]"]
    return "\n".join([*lines, *(_triton_tensors(kind, items) for kind, items in told.items())])


def _triton_tensors(kind: str, items: Sequence[NamedType]) -> str:
    tensors = map(tensor_of, items)
    each = [f'{{ name: "{one.name}" data_type: TYPE_{one.datatype} dims: {list(one.shape)} }}' for one in tensors]
    return f"{kind} [ {', '.join(each)} ]"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _start(name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, http: int) -> None:
    """Starts a server in the process group of this one, with which it ends, and waits until its model is ready."""
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            env={"ORT_DISABLE_TELEMETRY": "1", "PATH": "/usr/bin:/bin", "TMPDIR": str(folder), **environment},
            stdout=file,
            stderr=file,
        )
    end = time.monotonic() + START_SECONDS
    while not _is_ready(http):
        if process.poll() is not None or time.monotonic() > end:
            raise EngineRefusedError(f"{name} did not start: {log.read_text(errors='replace').strip()[-300:]}")
        time.sleep(LOOK_SECONDS)


def _is_ready(http: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/v2/models/m/ready", timeout=LOOK_SECONDS) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _asked(inputs: Mapping[str, Array], protocol: str, http: int, grpc: int, clients: int) -> Ready:
    if protocol == "http":
        body, headers = serve_engines.http_body(inputs)
        url = f"http://127.0.0.1:{http}/v2/models/m/infer"
        return serve_engines.asked_http(url, body, headers, clients, serve_engines.arrays_of_http)
    message = serve_engines.grpc_message(inputs).SerializeToString()
    return serve_engines.asked_grpc(f"127.0.0.1:{grpc}", message, clients, serve_engines.arrays_of_grpc)
