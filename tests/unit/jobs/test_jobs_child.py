# SPDX-License-Identifier: Apache-2.0
"""A job in a child: whatever a library does there costs that job only, and is said in one line."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.compiler import compile_warnings
from nndeploy.errors import BuildRefusedError, InputError, NndeployError, UnavailableError, UsageError, error_from_json
from nndeploy.files.file_content import let_go_of_all_pages
from nndeploy.jobs import child, messages, workers
from nndeploy.jobs.child import Child
from nndeploy.jobs.messages import Request, Response, request_from_folder, response_to_folder
from nndeploy.jobs.tasks import Built, MeasureOptions
from nndeploy.jobs.workers import ChildWorkers
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.sandbox import child_process
from nndeploy.target.target import Gpu, Target, host_target
from nndeploy.values.types import DimRange

REQUEST = Request("supports", {"backend": "any"})
REFUSED = Request("evaluate", {"backend": "no-such-backend"}, model=b"")
"""A real child answers it with a UsageError."""


def call(request: Request, seconds_limit: float) -> Response:
    with closing(Child()) as process:
        return process.call(request, seconds_limit)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function that puts a shell script in the place of the child's Python: a library that misbehaves."""

    def misbehave(script: str) -> None:
        fake = tmp_path / "python"
        fake.write_text(f"#!/bin/sh\nexec 3>&1 1>&2\nread folder\n{script}\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(fake))

    return misbehave


@pytest.mark.parametrize(("script", "kind", "reason"), [
    *((f"kill -{one} $$", BuildRefusedError, f"crashed \\(SIG{one}\\)") for one in ("SEGV", "ABRT", "FPE", "BUS")),
    ("echo first; echo what went wrong; exit 3", BuildRefusedError, "ended with status 3 what went wrong"),
    ("exit 0", BuildRefusedError, "ended with status 0"),
    ("head -c 50000000 /dev/zero | tr '\\0' 'x'; echo; echo last; exit 1", BuildRefusedError, "last"),
    ("echo \"ModuleNotFoundError: No module named 'nndeploy'\"; exit 1", UnavailableError, "cannot start a child"),
])  # fmt: skip
def test_an_end_without_an_answer_is_a_refusal_with_the_signal_or_the_last_line_of_the_log(
    library, script, kind, reason
) -> None:
    library(script)
    with pytest.raises(kind, match=reason):
        call(REQUEST, 60.0)


def test_a_child_that_hangs_is_killed_with_its_children(library, tmp_path: Path) -> None:
    library(f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/grandchild; wait; sleep 60")
    start = time.monotonic()
    with pytest.raises(BuildRefusedError, match=r"no answer within 0\.5 s"):
        call(REQUEST, 0.5)
    assert time.monotonic() - start < 5
    grandchild = int((tmp_path / "grandchild").read_text())
    deadline = time.monotonic() + 5
    while _is_running(grandchild) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(grandchild)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def test_a_crash_is_noticed_although_a_grandchild_keeps_the_output_open(library) -> None:
    library("sleep 60 & kill -SEGV $$")
    start = time.monotonic()
    with pytest.raises(BuildRefusedError, match="SIGSEGV"):
        call(REQUEST, 30.0)
    assert time.monotonic() - start < 5


def test_nothing_is_left_behind(library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    library("touch $folder/rubbish; kill -KILL $$")
    with pytest.raises(BuildRefusedError):
        call(REQUEST, 10.0)
    assert list(folder.iterdir()) == []


def test_the_child_sees_nothing_of_the_users_environment(library, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("LD_PRELOAD", "")
    library(f"env > {tmp_path}/env; exit 1")
    with pytest.raises(BuildRefusedError):
        call(REQUEST, 10.0)
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert names - shell == {
        "PATH", "LANG", "HOME", "TMPDIR", "NNDEPLOY_PARENT", "ORT_DISABLE_TELEMETRY", "OPENBLAS_THREAD_TIMEOUT"
    }  # fmt: skip


def test_a_real_child_answers() -> None:
    with pytest.raises(UsageError, match="no backend is called 'no-such-backend'"):
        call(
            Request("evaluate", {"backend": "no-such-backend"}, model=b"", samples=[{"x": np.ones(2, np.float32)}]),
            60.0,
        )


def test_a_child_is_kept_for_the_next_job_and_replaced_after_a_crash(library, monkeypatch) -> None:
    real = sys.executable
    with closing(Child()) as process:
        for _ in range(2):
            with pytest.raises(UsageError, match="no backend is called"):
                process.call(REFUSED, 60.0)
        first = process._process
        assert first is not None
        first.kill()
        with pytest.raises(BuildRefusedError, match="SIGKILL"):
            process.call(REQUEST, 60.0)
        monkeypatch.setattr(sys, "executable", real)
        with pytest.raises(UsageError, match="no backend is called"):
            process.call(REFUSED, 60.0)
        assert process._process is not first


def test_a_child_that_kept_much_memory_gets_no_further_job(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(Child):
        def _start(self) -> "subprocess.Popen[bytes]":
            code = "import nndeploy.jobs.main as m; m.keeps_much = lambda: True; m.main()"
            monkeypatch.setattr(child_process, "_BOOT", f"import sys; sys.path += sys.argv[4:]; {code}")
            return super()._start()

    with closing(Small()) as process:
        for _ in range(2):
            with pytest.raises(UsageError, match="no backend is called"):
                process.call(REFUSED, 60.0)
            assert process._process is None


def test_a_child_that_may_not_read_a_library_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "ops.so").touch()
    with closing(Child()) as process:
        for libraries, is_new in (((), True), ((), False), ((str(tmp_path / "ops.so"),), True), ((), False)):
            before = process._process
            request = Request("evaluate", {"backend": "no-such-backend"}, model=b"", options=BuildOptions(
                custom_op_libraries=libraries
            ))  # fmt: skip
            with pytest.raises(UsageError, match="no backend is called"):
                process.call(request, 60.0)
            assert (process._process is not before) == is_new


def test_a_kernel_without_the_parts_of_a_sandbox_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "missing", lambda: "Landlock")
    with closing(ChildWorkers(1, 60.0)) as sandboxed, closing(ChildWorkers(1, 60.0, has_sandbox=False)) as open_:
        assert (sandboxed.unprotected, open_.unprotected) == ("Landlock", "")
    assert compile_warnings.of_sandbox("") == []
    (line,) = compile_warnings.of_sandbox("Landlock")
    assert line.startswith("this kernel has no Landlock")


def test_a_child_outlives_the_thread_that_first_asked_it() -> None:
    with closing(ChildWorkers(1, 60.0)) as some:
        asked = threading.Thread(target=lambda: some.supports("reference", relu(), host_target(), BuildOptions()))
        asked.start()
        asked.join()
        time.sleep(0.1)  # the kernel ends a child a moment after the thread that started it
        assert all(answer.ok for answer in some.supports("reference", relu(), host_target(), BuildOptions()))


def test_children_that_nobody_wants_end() -> None:
    with closing(ChildWorkers(1, 60.0, idle_seconds=0.05)) as some:
        for _ in range(2):  # one is started again when it is wanted again
            assert all(said.ok for said in some.supports("reference", relu(), host_target(), BuildOptions()))
            process = some._idle[0][1]._process if some._idle else None
            deadline = time.monotonic() + 5
            while some._idle and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not some._idle
            assert process is None or process.wait(5) is not None


def test_an_interrupted_call_leaves_no_answer_to_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = child._answer_within

    def interrupted(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    with closing(ChildWorkers(1, 60.0)) as some:
        monkeypatch.setattr(child, "_answer_within", interrupted)
        with pytest.raises(KeyboardInterrupt):
            some.supports("reference", relu(), host_target(), BuildOptions())
        assert some._idle[0][1]._process is None
        monkeypatch.setattr(child, "_answer_within", real)
        assert all(said.ok for said in some.supports("reference", relu(), host_target(), BuildOptions()))


def relu() -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    ))  # fmt: skip


def test_request_and_response_survive_the_folder(tmp_path: Path) -> None:
    target = host_target()
    options = BuildOptions(2, {"N": DimRange(1, 8, 4)}, ("/lib.so",), "bf16")
    measure = MeasureOptions(0.5, 2, 1, ("/lib.so",))
    sample = {"x": np.arange(3), "s": [np.ones(1)], "none": None}
    request = Request("build", {"backend": "b"}, target, options, measure, b"model", [sample])
    messages.request_to_folder(request, tmp_path)
    back = request_from_folder(tmp_path)
    assert (back.task, back.arguments, back.target, back.options, back.measure, back.model) == (
        "build", {"backend": "b"}, target, options, measure, b"model",
    )  # fmt: skip
    assert isinstance(back.target, Target)
    np.testing.assert_array_equal(back.samples[0]["x"], sample["x"])
    assert back.samples[0]["none"] is None
    built = Built(
        Artifact({"a.bin": b"123"}, {"k": [1]}, {"arch": "x86_64"}, True, False, "log", "bf16"), (sample,), "why"
    )
    response_to_folder(messages.built_to_response(built), tmp_path)
    again = messages.built_from(messages.response_from_folder(tmp_path))
    assert again.artifact == built.artifact
    assert again.not_run == "why"
    np.testing.assert_array_equal(again.outputs[0]["x"], sample["x"])


def test_large_outputs_take_no_memory_until_they_are_read_and_after(tmp_path: Path) -> None:
    """A compile compares the outputs of many calls, and a child's memory counts beside them."""
    (tmp_path / "task").mkdir()
    want = np.arange(1 << 23, dtype=np.float32)
    response_to_folder(Response({}, outputs=[{"y": want}]), tmp_path / "task")
    (got,) = messages.response_from_folder(tmp_path / "task").outputs
    shutil.rmtree(tmp_path / "task")
    assert resident_bytes(got["y"]) < want.nbytes // 2
    np.testing.assert_array_equal(got["y"], want)
    assert resident_bytes(got["y"]) >= want.nbytes
    let_go_of_all_pages()
    assert resident_bytes(got["y"]) < want.nbytes // 2
    np.testing.assert_array_equal(got["y"], want)


def resident_bytes(array: np.ndarray) -> int:
    """Returns the bytes in memory of the mapping in which an array lies."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            first, end = (int(text, 16) for text in found.groups())
            if first <= array.ctypes.data < end:
                return next(1024 * int(one.split()[1]) for one in lines if one.startswith("Rss:"))
    raise AssertionError("the array lies in no mapping")


def test_target_with_gpus_survives_the_folder(tmp_path: Path) -> None:
    gpus = (Gpu("one", "8.9", 1 << 34, (("maxBlockSize", (1024, 1024, 64)), ("warpSize", 32))), Gpu("two", "7.5"))
    request = Request("supports", {"backend": "any"}, target=Target("box", "x86_64", gpus=gpus))
    messages.request_to_folder(request, tmp_path)
    assert request_from_folder(tmp_path).target == request.target


def test_an_error_keeps_its_kind_across_the_folder(tmp_path: Path) -> None:
    response_to_folder(InputError("what", where="where", hint="hint"), tmp_path)
    with pytest.raises(InputError, match=r"where: what \(hint: hint\)") as found:
        messages.response_from_folder(tmp_path)
    assert found.value.exit_code == 65
    response_to_folder(BuildRefusedError("no"), tmp_path)
    with pytest.raises(BuildRefusedError, match="no"):
        messages.response_from_folder(tmp_path)
    assert error_from_json({"code": "unheard-of", "what": "w", "where": "", "hint": ""}).__class__ is NndeployError


def test_a_response_without_its_json_is_no_response(tmp_path: Path) -> None:
    response_to_folder(Response(1), tmp_path)
    assert (tmp_path / "response.json").exists()
    assert not list(tmp_path.glob("*.partial"))


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import subprocess, sys, time\n"
        "code = 'import os, time; from nndeploy.jobs.main import limit_this_process as l; l();"
        " print(os.getpid(), flush=True); time.sleep(60)'\n"
        "subprocess.Popen([sys.executable, '-c', code]); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, str(parent)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    os.kill(process.pid, 9)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 5
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(pid)


def test_children_do_without_what_their_user_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(child_process.KERNELS_WITHOUT, raising=False)
    before = child_process.child_environment(tmp_path)
    monkeypatch.setenv("NNDEPLOY_KERNELS_WITHOUT", "amx")
    assert child_process.child_environment(tmp_path) == {**before, "NNDEPLOY_KERNELS_WITHOUT": "amx"}


def test_threads_of_numpy_sleep_in_a_child_while_they_have_nothing_to_do(tmp_path: Path) -> None:
    code = (
        "import time, numpy as np; numbers = np.ones(20_000); start = time.perf_counter(), time.process_time()\n"
        "for _ in range(10): np.vdot(numbers, numbers); time.sleep(0.03)\n"
        "print((time.process_time() - start[1]) / (time.perf_counter() - start[0]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_process.child_environment(tmp_path), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert float(done.stdout) < 0.5
