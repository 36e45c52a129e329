# SPDX-License-Identifier: Apache-2.0
"""What people type who know other tools, and what it is called here.

One table of commands, one of options, whatever command they stand behind; what only looks like one of our names is a
slip of the keyboard, and `nndeploy.errors.did_you_mean` answers it.
"""

import re
from collections.abc import Iterable, Sequence

from nndeploy.errors import nearest

_BUNDLE = "the bundle stands behind the command: nndeploy bench BUNDLE"
_COMPILE = "nndeploy compile MODEL -o BUNDLE"
_FP16 = "fp16 is not offered: --precision bf16, --quantise int8, or export the model in float16"
_GATHERED = "with --scenario offline: --inflight N"
_INSTALLED = "nndeploy installed lists what is installed, nndeploy inspect BUNDLE shows what is in a bundle"
_QUANTISE = "nndeploy compile MODEL -o BUNDLE --quantise int8 --samples FOLDER"
_UNINSTALL = "nndeploy uninstall NAME removes what is installed under a name; a bundle that is not is one file"

COMMANDS = {
    "autotune": "nndeploy tune BUNDLE",
    "build": _COMPILE,
    "benchmark": "nndeploy bench BUNDLE",
    "check": "nndeploy verify BUNDLE",
    "clean": "nndeploy cache gc",
    "compare": "nndeploy diff A B",
    "convert": _COMPILE,
    "delete": _UNINSTALL,
    "deploy": "nndeploy install NAME BUNDLE",
    "download": "nndeploy pull REGISTRY/REPOSITORY:TAG -o BUNDLE",
    "images": "nndeploy installed",
    "infer": "nndeploy run BUNDLE --input WHAT",
    "info": "nndeploy inspect BUNDLE",
    "init": "nndeploy new KIND --model MODEL -o FILE.toml",
    "list": _INSTALLED,
    "lock": "nndeploy compile --decisions FILE keeps the choice of backends",
    "login": "push and pull take what docker login stored, or --username with --password-stdin",
    "logs": "what a service says goes to its standard error: journalctl -u UNIT",
    "ls": _INSTALLED,
    "optimise": _COMPILE,
    "optimize": _COMPILE,
    "predict": "nndeploy run BUNDLE --input WHAT",
    "profile": "nndeploy bench BUNDLE --operators",
    "quantise": _QUANTISE,
    "quantize": _QUANTISE,
    "remove": _UNINSTALL,
    "rm": _UNINSTALL,
    "rmi": _UNINSTALL,
    "show": "nndeploy inspect BUNDLE",
    "status": "nndeploy doctor checks this machine, nndeploy installed lists what is installed",
    "tag": "nndeploy push BUNDLE REGISTRY/REPOSITORY:TAG gives the tag",
    "test": "nndeploy verify BUNDLE",
    "update": "nndeploy install NAME BUNDLE puts a newer bundle in place of the current one",
    "upgrade": "nndeploy install NAME BUNDLE puts a newer bundle in place of the current one",
    "upload": "nndeploy push BUNDLE REGISTRY/REPOSITORY:TAG",
    "version": "nndeploy --version",
    "cache clean": "nndeploy cache gc --size 0",
    "cache clear": "nndeploy cache gc --size 0",
    "cache prune": "nndeploy cache gc",
}
"""Command of docker, oras, cargo, uv, trtexec, polygraphy or optimum-cli -> what does it here."""

OPTIONS = {
    "-V": "nndeploy --version",
    "-d": "--device",
    "-hint": "nndeploy compile --objective latency or throughput",
    "-m": _BUNDLE,
    "-niter": "--iterations N",
    "-nireq": _GATHERED,
    "-nstreams": _GATHERED,
    "-v": "nndeploy --version; of a command that has it, -v shows more",
    "--best": _FP16,
    "--fp16": _FP16,
    "--fp8": _FP16,
    "--int8": "--quantise int8 --samples FOLDER",
    "--loadEngine": _BUNDLE,
    "--locked": "--decisions FILE",
    "--model-repository": "nndeploy serve NAME=BUNDLE NAME=BUNDLE",
    "--onnx": _COMPILE,
    "--onnxrt": "nndeploy compile MODEL -o BUNDLE --backends onnxruntime",
    "--openvino": "nndeploy compile MODEL -o BUNDLE --backends openvino",
    "--port": "--http 127.0.0.1:PORT, --grpc 127.0.0.1:PORT",
    "--saveEngine": _COMPILE,
    "--streams": _GATHERED,
    "--trt": "nndeploy compile MODEL -o BUNDLE --backends tensorrt",
    "--workspace": "--memory-limit SIZE",
}
"""Option of another tool -> what does it here."""

VALUES = {("--precision", "fp16"): _FP16, ("--precision", "int8"): OPTIONS["--int8"]}
"""Option of ours and a value that it does not have -> what does it."""

BEHIND = {
    "bench": "inputs go behind --input: nndeploy bench BUNDLE --input WHAT",
    "compile": "one model a call; nndeploy batch FLEET.toml compiles many",
    "run": "inputs go behind --input: nndeploy run BUNDLE --input WHAT",
}
"""Command -> what to do with an argument too many."""

_LONG_WITH_ONE_DASH = tuple(word for word in OPTIONS if re.fullmatch(r"-\w{2,}", word))


def command_hint(group: str, typed: str, known: Iterable[str]) -> str:
    """Returns which command was meant by one that a group, "" for nndeploy itself, does not have."""
    if meant := COMMANDS.get(f"{group} {typed}".strip()):
        return meant
    near = nearest(typed, known)
    return f"did you mean {near!r}?" if near else "" if group else "nndeploy --help lists the commands"


def single_dashed(arguments: Sequence[str]) -> str:
    """Returns the first argument that is a long option of another tool behind one dash, "" where none is.

    To click it is several short options: `-hint` would show the help.
    """
    return next((one for one in arguments if one.partition("=")[0] in _LONG_WITH_ONE_DASH), "")


def value_hint(names: Sequence[str], arguments: Sequence[str]) -> str:
    """Returns what to give instead of the value that an option of these names has in a command line, or ""."""
    words = [word for one in arguments for word in one.split("=", 1)]
    return next((hint for (name, value), hint in VALUES.items() if name in names and value in words), "")
