# SPDX-License-Identifier: Apache-2.0
"""The action and the template of configs/ci: their commands run, and leave what the files say."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("github/action.yml", "gitlab.yml")
OPTIONS = ("--objective", "priority", "--goldens", "1")


@pytest.mark.parametrize("name", FILES)
def test_its_commands_compile_and_verify(nndeploy_command, tmp_path: Path, name: str) -> None:
    text = (ROOT / "configs" / "ci" / name).read_text()
    values = {"MODEL": str(ROOT / "examples/digits/digits.onnx"), "OUTPUT": "m.nnd", "OPTIONS": shlex.join(OPTIONS)}
    lines = re.findall(r"""(?:run: '|- )nndeploy (.*?)'?(?:,.*)?$""", text, re.MULTILINE)
    assert [line.partition(" ")[0] for line in lines] == ["compile", "verify"]
    for line in lines:
        command = re.sub(r"\$([A-Z]+)", lambda found: values[found[1]], line)
        done = nndeploy_command(*shlex.split(command), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {
        "m.nnd", *re.findall(r"--junit (\S+)", text)
    }  # fmt: skip
