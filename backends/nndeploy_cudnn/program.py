# SPDX-License-Identifier: Apache-2.0
"""What a session runs: plans, and for each step which memory the plan's tensors are. The contract of the two halves.

    program.json              this, as canonical JSON
    plans.bin                 the texts of the plans, one after the other, each once
    constants.safetensors     weights, biases and the like, as they lie on the device

Where the batch is in a range, these stand in a folder for each number of rows that there are plans for: "rows-8".
Law: `program_from_json(program_to_json(p)) == p`, and whatever would reach outside its memory is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json, parse_json

T = TypeVar("T")

FORMAT = 1
PROGRAM_FILE, PLANS_FILE, CONSTANTS_FILE = "program.json", "plans.bin", "constants.safetensors"
KINDS = ("input", "output", "constant", "arena")
DTYPES = ("float16", "bfloat16", "float32")
MAX_PROGRAM_BYTES = 64 << 20
MAX_BYTES = 1 << 48


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output: dense and row-major."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """The tensor `uid` of a plan is at `offset` bytes of input or output number `index`, the constants or the arena."""

    uid: int
    kind: str
    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """Runs plan number `plan`; `scalars` are (uid, number) that it gets by value; `makes` names a value for people."""

    makes: str
    plan: int
    bindings: tuple[Binding, ...]
    scalars: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """`constants` are (name, offset on the device, bytes), `plans` are (offset in the file, bytes)."""

    cudnn_version: int
    gpu: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constant_bytes: int
    arena_bytes: int
    workspace_bytes: int
    constants: tuple[tuple[str, int, int], ...]
    plans: tuple[tuple[int, int], ...]
    steps: tuple[ProgramStep, ...]


def folder_of(rows: int) -> str:
    """Returns the folder of what is for a batch of so many rows."""
    return f"rows-{rows}"


def program_to_json(program: Program) -> bytes:
    """Returns the one text of a program."""
    return canonical_json(
        {
            "format": FORMAT,
            "cudnn_version": program.cudnn_version,
            "gpu": program.gpu,
            "inputs": [[t.name, t.dtype, list(t.shape)] for t in program.inputs],
            "outputs": [[t.name, t.dtype, list(t.shape)] for t in program.outputs],
            "constant_bytes": program.constant_bytes,
            "arena_bytes": program.arena_bytes,
            "workspace_bytes": program.workspace_bytes,
            "constants": [list(constant) for constant in program.constants],
            "plans": [list(plan) for plan in program.plans],
            "steps": [_step_to_json(step) for step in program.steps],
        }
    )


def _step_to_json(step: ProgramStep) -> list[Any]:
    bindings = [[binding.uid, binding.kind, binding.index, binding.offset] for binding in step.bindings]
    return [step.makes, step.plan, bindings, [list(scalar) for scalar in step.scalars]]


def program_from_json(text: bytes | memoryview) -> Program:
    """Returns the program of a text.

    Raises:
        BundleError: it is no program, is of another format, or reaches outside its memory.
    """
    data = parse_json(text, MAX_PROGRAM_BYTES)
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise BundleError(f"{PROGRAM_FILE} is no program of format {FORMAT}")
    program = Program(
        cudnn_version=_number(data.get("cudnn_version")),
        gpu=_text(data.get("gpu")),
        inputs=_each(data.get("inputs"), _tensor),
        outputs=_each(data.get("outputs"), _tensor),
        constant_bytes=_number(data.get("constant_bytes")),
        arena_bytes=_number(data.get("arena_bytes")),
        workspace_bytes=_number(data.get("workspace_bytes")),
        constants=_each(data.get("constants"), _constant),
        plans=_each(data.get("plans"), _range),
        steps=_each(data.get("steps"), _step),
    )
    if program_to_json(program) != bytes(text):
        raise BundleError(f"{PROGRAM_FILE} has unknown fields")
    _check_bounds(program)
    return program


def _check_bounds(program: Program) -> None:
    """Refuses a binding that starts outside its memory, and a constant that ends outside."""
    sizes = {"constant": program.constant_bytes, "arena": program.arena_bytes}
    counts = {"input": len(program.inputs), "output": len(program.outputs)}
    for step in program.steps:
        if step.plan >= len(program.plans):
            raise BundleError(f"{PROGRAM_FILE}: step {step.makes!r} runs plan {step.plan} of {len(program.plans)}")
        for binding in step.bindings:
            count, size = counts.get(binding.kind, 1), sizes.get(binding.kind, MAX_BYTES)
            if binding.index >= count or binding.offset >= size:
                raise BundleError(f"{PROGRAM_FILE}: step {step.makes!r} reaches outside the {binding.kind} memory")
    for name, offset, size in program.constants:
        if offset + size > program.constant_bytes:
            raise BundleError(f"{PROGRAM_FILE}: constant {name!r} reaches outside the constant memory")


def _each(data: object, one: Callable[[Any], T]) -> tuple[T, ...]:
    if not isinstance(data, list):
        raise _malformed(data)
    return tuple(one(item) for item in data)


def _tensor(data: Any) -> Tensor:
    name, dtype, shape = _fields(data, 3)
    if dtype not in DTYPES:
        raise BundleError(f"{PROGRAM_FILE}: {name!r:.80} is of type {dtype!r:.40}")
    return Tensor(_text(name), dtype, _each(shape, _number))


def _constant(data: Any) -> tuple[str, int, int]:
    name, offset, size = _fields(data, 3)
    return _text(name), _number(offset), _number(size)


def _range(data: Any) -> tuple[int, int]:
    offset, size = _fields(data, 2)
    return _number(offset), _number(size)


def _step(data: Any) -> ProgramStep:
    makes, plan, bindings, scalars = _fields(data, 4)
    return ProgramStep(_text(makes), _number(plan), _each(bindings, _binding), _each(scalars, _scalar))


def _binding(data: Any) -> Binding:
    uid, kind, index, offset = _fields(data, 4)
    if kind not in KINDS:
        raise _malformed(kind)
    return Binding(_number(uid), kind, _number(index), _number(offset))


def _scalar(data: Any) -> tuple[int, float]:
    uid, number = _fields(data, 2)
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise _malformed(number)
    return _number(uid), number


def _fields(data: Any, count: int) -> Sequence[Any]:
    if not isinstance(data, list) or len(data) != count:
        raise _malformed(data)
    return data


def _number(data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or not 0 <= data < MAX_BYTES:
        raise _malformed(data)
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise _malformed(data)
    return data


def _malformed(data: object) -> BundleError:
    return BundleError(f"{PROGRAM_FILE} is malformed at {data!r:.80}")
