# SPDX-License-Identifier: Apache-2.0
"""What is emitted for other engines is what they read, whatever the jobs are called: run by those that are here."""

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from nndeploy.errors import UsageError
from nndeploy.farm.emit.commands import commands_of
from nndeploy.farm.emit.forms import FORMS
from nndeploy.farm.emit.job_command import JobCommand
from nndeploy.farm.emit.slurm import MAX_ARRAY
from nndeploy.farm.fleet import Fleet, ModelFiles
from nndeploy.farm.job import Job
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.planned import BUILD, Planned

ODD = (
    "a", "it's b", 'say "c"', "$HOME $$ ${x} $(d) $out", "`e` \\ #f %g *?", "ünï→☃", "-j", "{{x}} %{TASK_ID}", "&& ;|>",
)  # fmt: skip
STUB = """#!/bin/sh
printf '%s\\n' "$@" > "$NNDEPLOY_LOG/$$"
case "$*" in *"{failing}"*) exit {code} ;; esac
"""
SCONTROL = '#!/bin/sh\necho "$@" >> "$NNDEPLOY_LOG/requeued"\n'
SBATCH = """#!/bin/sh
echo "$@" >> "$NNDEPLOY_LOG/submitted"
for word; do
    case $word in
    --array=*) last=${word#--array=0-} ;;
    task) break ;;
    esac
    shift
done
i=0
while [ "$i" -le "$last" ]; do
    SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$i sh "$FILE" "$@" || true
    i=$((i + 1))
done
"""
"""Takes the script from $FILE, and runs the tasks of its arrays at once."""


def command(name: str, **fields: object) -> JobCommand:
    given = {"key": "", "output": f"/o/{name}.nnd", "estimate": 3.0, "time_limit": 3600.0, **fields}
    return JobCommand(f"{name}/host", ("nndeploy", "batch", "/f o/l$.toml", f"--only={name}/host"), **given)  # type: ignore[arg-type]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that tell what they were called with: `nndeploy`, which fails for `a`, and SLURM's."""
    folder = tmp_path / "bin"
    (folder / "log").mkdir(parents=True)
    scripts = {"nndeploy": STUB.format(failing="only=a/", code=1), "sbatch": SBATCH, "scontrol": SCONTROL}
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NNDEPLOY_LOG", str(folder / "log"))
    monkeypatch.chdir(tmp_path)
    return folder


def ran(engine: Path, form: str, commands: Sequence[JobCommand], *line: str) -> subprocess.CompletedProcess[str]:
    file = engine.parent / "file"
    file.write_text(FORMS[form].text(commands), encoding="utf-8")
    environment = {**os.environ, "FILE": str(file)}
    return subprocess.run([*line, str(file)], env=environment, capture_output=True, text=True, check=False, timeout=60)


def calls(engine: Path) -> list[tuple[str, ...]]:
    """Returns what each call of `nndeploy` was given."""
    logs = [path for path in (engine / "log").iterdir() if path.name.isdigit()]
    found = sorted(tuple(path.read_text(encoding="utf-8").splitlines()) for path in logs)
    for path in logs:
        path.unlink()
    return found


def wanted(names: Sequence[str], *more: str) -> list[tuple[str, ...]]:
    return sorted(("batch", "/f o/l$.toml", f"--only={name}/host", *more) for name in names)


@pytest.mark.parametrize(("form", "line"), [("ninja", "ninja -k 0 -f"), ("make", "make -k -f")])
def test_every_job_runs_with_its_words_and_what_failed_alone_runs_again(engine: Path, form: str, line: str) -> None:
    if shutil.which(form) is None:
        pytest.skip(f"{form} is not installed")
    commands = [command(name, needs={"gpu": "sm120"} if name == "-j" else {}) for name in ODD]
    assert ran(engine, form, commands, *line.split()).returncode != 0
    assert calls(engine) == wanted(ODD)
    ran(engine, form, commands, *line.split())
    assert calls(engine) == wanted(["a"])
    changed = [command(name, key="ab" * 32 if name == "it's b" else "") for name in ODD[1:]]
    assert ran(engine, form, changed, *line.split()).returncode == 0
    assert calls(engine) == wanted(["it's b"]), "a job of which a part changed has no stamp"


@pytest.mark.parametrize(("form", "line"), [("ninja", "ninja -f"), ("make", "make -f"), ("slurm", "sh")])
def test_nothing_to_do_is_done(engine: Path, form: str, line: str) -> None:
    if shutil.which(form) is None and form != "slurm":
        pytest.skip(f"{form} is not installed")
    assert ran(engine, form, [], *line.split()).returncode == 0


def test_slurm_gets_an_array_for_all_jobs_of_the_same_limits(engine: Path) -> None:
    limits = {"-j": {"time_limit": 90.0, "memory_limit": 8 << 30}, "ünï→☃": {"needs": {"gpu": "sm120"}}}
    commands = [command(name, **limits.get(name, {})) for name in ODD]  # type: ignore[arg-type]
    done = ran(engine, "slurm", commands, "sh")
    assert (done.returncode, done.stderr) == (0, "")
    file = str(engine.parent / "file")
    assert (engine / "log" / "submitted").read_text().splitlines() == [
        f"--job-name=nndeploy --requeue --array=0-6 --time=65 {file} task 0",
        f"--job-name=nndeploy --requeue --array=0-0 --time=65 --gres=gpu:1 {file} task 7",
        f"--job-name=nndeploy --requeue --array=0-0 --time=7 --mem=9216M {file} task 8",
    ]
    assert calls(engine) == wanted(ODD, "-j", "1")
    assert not (engine / "log" / "requeued").exists()
    assert subprocess.run(["bash", "-n", file], capture_output=True, check=False).stderr == b""


def test_slurm_gets_the_options_of_who_submits_and_no_array_larger_than_it_takes() -> None:
    text = FORMS["slurm"].text([command(str(number)) for number in range(MAX_ARRAY + 2)])
    submits = [line.split() for line in text.splitlines() if line.startswith("    submit ")]
    assert [(line[1], line[2]) for line in submits] == [("0", "--array=0-999"), ("1000", "--array=0-1")]
    assert all(line[-1] == '"$@"' for line in submits)
    assert f"{MAX_ARRAY + 1}) set -- nndeploy" in text


@pytest.mark.parametrize(("code", "restarts", "is_requeued"), [(75, "0", True), (75, "3", False), (1, "0", False)])
def test_slurm_requeues_what_a_machine_is_to_blame_for(engine, monkeypatch, code, restarts, is_requeued) -> None:
    (engine / "nndeploy").write_text(STUB.format(failing="only=a/", code=code))
    monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    file = engine.parent / "file"
    file.write_text(FORMS["slurm"].text([command("b"), command("a")]))
    done = subprocess.run(["sh", str(file), "task", "0"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert (engine / "log" / "requeued").exists() == is_requeued
    if is_requeued:
        assert (engine / "log" / "requeued").read_text() == "requeue 7_1\n"


def test_hyperqueue_gets_a_task_for_each_job_with_what_it_may_take() -> None:
    commands = [
        command("large", time_limit=90.5, memory_limit=(8 << 30) + 1, needs={"gpu": "sm120"}),
        *map(command, ODD),
    ]
    found = tomllib.loads(FORMS["hq"].text(commands))
    assert [tuple(task["command"]) for task in found["task"]] == [one.words for one in commands]
    assert found["task"][0]["request"] == [
        {"resources": {"cpus": 1, "mem": 8590, "gpus/nvidia": 1}, "time_request": "150s"}
    ]
    assert found["task"][1]["request"] == [{"resources": {"cpus": 1}, "time_request": "3660s"}]
    priorities = [task["priority"] for task in found["task"]]
    assert priorities == sorted(priorities, reverse=True)
    with pytest.raises(UsageError, match="HyperQueue takes no file without tasks"):
        FORMS["hq"].text([])


def test_json_lines_hold_a_job_each() -> None:
    commands = [command(name, memory_limit=1 << 30, needs={"gpu": "sm120"}) for name in ODD]
    text = FORMS["jsonl"].text(commands)
    assert text.isascii()
    rows = [json.loads(line) for line in text.splitlines()]
    assert [tuple(row["command"]) for row in rows] == [one.words for one in commands]
    assert rows[0] == {
        "schema": "nndeploy.batch-job.1", "job": "a/host", "command": list(commands[0].words), "key": "",
        "output": "/o/a.nnd", "estimate_seconds": 3.0, "time_limit_seconds": 3600.0,
        "memory_limit_bytes": 1 << 30, "needs": {"gpu": "sm120"},
    }  # fmt: skip


def planned(name: str = "a") -> Planned:
    limits = {"total_time_limit": 90.0, "memory_limit": 1 << 30}
    return Planned(
        Job(f"{name}/host", name, "host", "", "/m", {}, limits, "/o", {"gpu": "sm120"}, 5.0), "cd" * 32, BUILD
    )


def fleet(folder: str) -> Fleet:
    return Fleet("../x/fleet.toml", Path(folder), "{model}.nnd", (ModelFiles("models", ("*.onnx",)),))


def test_a_command_names_the_fleet_file_and_its_job() -> None:
    options = BatchOptions(journal="/j", fresh=True, retry_failed=True)
    (one,) = commands_of([planned()], fleet("/tree"), options)
    assert one.words == (
        "nndeploy", "batch", "/tree/fleet.toml", "--only=a/host", "--journal=/j", "--fresh", "--retry-failed",
    )  # fmt: skip
    assert (one.time_limit, one.memory_limit, one.needs_gpu, one.estimate) == (90.0, 1 << 30, True, 5.0)


@pytest.mark.parametrize("folder", ["/two\nlines", "/a\ttab", "/\udcff"])
def test_a_path_that_not_every_form_can_write_is_refused(folder: str) -> None:
    with pytest.raises(UsageError, match="holds a character that cannot be printed"):
        commands_of([planned()], fleet(folder), BatchOptions())
