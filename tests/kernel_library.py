# SPDX-License-Identifier: Apache-2.0
"""Plans run through the kernel library directly, each array ending at a page that nobody may touch."""

import ctypes
import hashlib
import inspect
import mmap
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from pathlib import Path
from unittest.mock import patch

import numpy as np
from nndeploy_kernels.build import LIBRARIES, build, compiled, level_arguments, units, zig
from nndeploy_kernels.levels import LEVELS
from nndeploy_native.opened_model import Options
from nndeploy_native.plan import DTYPES
from nndeploy_native.plan_words import write_step
from nndeploy_native.plan_writer import PlanWriter
from nndeploy_native.step_choices import StepChoice, choices_in_memory
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Tensor

from nndeploy.target.target import host_target
from nndeploy.values.solving import solved_symbols

HOST = host_target()
LEVELS_HERE = [
    level.name for level in LEVELS if level.arch == HOST.arch and set(HOST.cpu_features).issuperset(level.cpu_features)
]
"""The levels that this machine runs."""

AMX_MODEL = "x86-64-v4 with a model of AMX"
"""A level for tests, on machines that have x86-64-v4: C functions do what the instructions of AMX do, and all products
of bytes and of float32 matrices take tiles, however small they are."""
AMX = "x86-64-v4 with AMX for all"
"""The same with the instructions, on machines that have them."""
BF16_AMX_MODEL, BF16_AMX = "x86-64-v4-bf16 with a model of AMX", "x86-64-v4-bf16 with AMX for all"
"""The same of x86-64-v4-bf16, where products of bfloat16 take tiles too."""
ALONE, BF16_ALONE = "x86-64-v4 without AMX", "x86-64-v4-bf16 without AMX"
"""The levels as processors without AMX have them."""
_AMX_MODEL = Path(__file__).parent / "unit" / "kernels" / "amx_model.h"
TILES_FOR_ALL = tuple(f"-DNND_AMX_LEAST_{what}=1" for what in ("ROWS", "K", "PRODUCTS"))
"""What the compiler is told, so that all products take tiles, however small they are."""
_OF_TILES = ("kernels/int8_tile.c", "kernels/bf16_tiles.c", "kernels/thirds.c")

DTYPE_NAMES = tuple(DTYPES.values())
"""The types of elements, in the order of their numbers."""

ChoicesOf = Callable[[int], Sequence[StepChoice]]
"""Number of steps -> how they are done."""

_PAGE = mmap.PAGESIZE
_ROOM = 1 << 20
"""For packed weights beside five times the plain ones: columns are filled up to whole tiles."""
_libc = ctypes.CDLL(None, use_errno=True)


class Call(ctypes.Structure):
    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_int64),
        ("pace", ctypes.c_void_p),
        *((f"fault_{name}", ctypes.c_int64) for name in ("step", "at", "index", "size")),
        ("step_ns", ctypes.c_void_p),
    )


class OutOfRangeError(Exception):
    """An index is out of range: (step, number of the index, index, size of the axis)."""


class RefusedError(Exception):
    """The library refused a plan or shapes; the message is its own."""


@cache
def library(level: str) -> ctypes.CDLL:
    """Returns the library of a level, built where it is not."""
    if level in (AMX, AMX_MODEL, BF16_AMX, BF16_AMX_MODEL):
        return loaded(_build_of_amx(level.split()[0], is_model=level in (AMX_MODEL, BF16_AMX_MODEL)))
    if level in (ALONE, BF16_ALONE):
        return _without_amx(build(next(one for one in LEVELS if one.name == level.split()[0])))
    return loaded(build(next(one for one in LEVELS if one.name == level)))


def _without_amx(path: Path) -> ctypes.CDLL:
    """Returns a library that was told to do without AMX, which it asks for when a plan is opened first."""
    folder = LIBRARIES / "objects" / "without-amx" / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    staged, copy = folder / f".{os.getpid()}.so", folder / "library.so"
    shutil.copyfile(path, staged)
    staged.replace(copy)
    lib = loaded(copy)
    with patch.dict(os.environ, {"NNDEPLOY_KERNELS_WITHOUT": "amx"}), suppress(RefusedError):
        opened(lib, b"", 0, 0, Options(0, 0, 1), [])
    return lib


def _build_of_amx(name: str, *, is_model: bool) -> Path:
    """Returns the library of a level with tiles for all, whose sources of tiles are compiled apart."""
    level = next(one for one in LEVELS if one.name == name)
    digest = hashlib.sha256(_AMX_MODEL.read_bytes()).hexdigest()
    arguments, kept = level_arguments(level), LIBRARIES / "objects"
    flags = TILES_FOR_ALL
    if is_model:
        flags += (f"-DNND_AMX_MODEL={digest}", "-include", str(_AMX_MODEL))
    folder = kept / f"{'amx-model' if is_model else 'amx-for-all'}-{name}"
    objects = compiled([one for one in units() if one[0] not in _OF_TILES], arguments, kept / level.name)
    objects += compiled([(source, flags) for source in _OF_TILES], arguments, folder)
    path = folder / "library.so"
    staged = path.with_name(f".{os.getpid()}.so")
    zig("cc", ["-target", level.zig_target, "-shared", "-pthread", *map(str, objects), "-o", str(staged)])
    return staged.replace(path)


def loaded(path: Path) -> ctypes.CDLL:
    """Returns a library that lies somewhere."""
    found = ctypes.CDLL(str(path))
    found.nnd_model_open.restype = found.nnd_table_make.restype = found.nnd_pool_make.restype = ctypes.c_void_p
    for name in ("nnd_table_arena_bytes", "nnd_table_scratch_bytes"):
        getattr(found, name).restype = ctypes.c_int64
        getattr(found, name).argtypes = (ctypes.c_void_p,)
    found.nnd_run.argtypes = (ctypes.c_void_p,) * 3
    for name in ("nnd_model_close", "nnd_table_free", "nnd_pool_free"):
        getattr(found, name).argtypes = (ctypes.c_void_p,)
    return found


class Guarded:
    """Memory of so many bytes whose end is the end of a page, behind which nobody may read."""

    def __init__(self, num_bytes: int, alignment: int = 4) -> None:
        """Maps it; it begins at a multiple of `alignment`, so that up to that less one bytes lie behind it."""
        size = -(-max(1, num_bytes) // _PAGE) * _PAGE
        self._map = mmap.mmap(-1, size + _PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        assert _libc.mprotect(ctypes.c_void_p(address + size), _PAGE, 0) == 0
        start = (size - num_bytes) // alignment * alignment
        self.address = address + start
        self.bytes: Array = np.frombuffer(self._map, np.uint8, num_bytes, start)


def guarded(array: Array) -> tuple[Array, Guarded]:
    """Returns a copy of an array in guarded memory."""
    memory = Guarded(array.nbytes, array.itemsize)
    copy = memory.bytes.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy, memory


def plan_of(
    steps: Sequence[NativeStep],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    constants: Mapping[str, Array] | None = None,
) -> tuple[bytes, bytes]:
    """Returns the plan of steps and its weights."""
    solved = solved_symbols(one.shape for one in inputs)
    writer = PlanWriter(solved, [one.name for one in inputs], [one.name for one in outputs], constants or {})
    for step in steps:
        write_step(step, writer)
    return writer.finished(list(inputs), list(outputs)), bytes(writer.weights.content())


def opened(
    lib: ctypes.CDLL,
    words: bytes,
    weights: int,
    num_weight_bytes: int,
    options: Options,
    arrays: Sequence[Array],
    symbols: Sequence[int] = (),
    choices: ChoicesOf | None = None,
) -> tuple[int, int]:
    """Returns a model, whose weights lie at the address `weights`, and its table for the shapes of `arrays`.

    `choices` says how so many steps are done; None: by the rules.

    Raises:
        RefusedError: the library refuses the plan or the shapes.
    """
    message = ctypes.create_string_buffer(400)
    model = lib.nnd_model_open(
        ctypes.c_char_p(words), ctypes.c_int64(len(words)), ctypes.c_void_p(weights), ctypes.c_int64(num_weight_bytes),
        ctypes.byref(options), message, ctypes.c_int64(len(message)),
    )  # fmt: skip
    if not model:
        raise RefusedError(message.value.decode())
    chosen = None if choices is None else choices(lib.nnd_model_num_steps(ctypes.c_void_p(model)))
    try:
        return model, made_table(lib, model, arrays, symbols, chosen)
    except RefusedError:
        lib.nnd_model_close(model)
        raise


def made_table(
    lib: ctypes.CDLL,
    model: int,
    arrays: Sequence[Array],
    symbols: Sequence[int] = (),
    choices: Sequence[StepChoice] | None = None,
) -> int:
    """Returns the table of a model for the shapes of `arrays`, whose steps are done as `choices` say.

    Raises:
        RefusedError: the library refuses the shapes.
    """
    message = ctypes.create_string_buffer(400)
    flat = [number for array in arrays for number in (DTYPE_NAMES.index(array.dtype.name), array.ndim, *array.shape)]
    table = lib.nnd_table_make(
        ctypes.c_void_p(model), (ctypes.c_int64 * max(1, len(symbols)))(*symbols), ctypes.c_int64(len(symbols)),
        (ctypes.c_int64 * max(1, len(flat)))(*flat), ctypes.c_int64(len(flat)), choices_in_memory(choices), message,
        ctypes.c_int64(len(message)),
    )  # fmt: skip
    if not table:
        raise RefusedError(message.value.decode())
    return int(table)


def told_steps(
    level: str, plan: tuple[bytes, bytes], arrays: Sequence[Array], *, plain_bytes: bool = False
) -> list[str]:
    """Returns how each step of a plan is done on a level, in the words of the library."""
    lib, (words, weights) = library(level), plan
    kept, text = Guarded(len(weights), 64), ctypes.create_string_buffer(200)
    kept.bytes[:] = np.frombuffer(weights, np.uint8)
    model, table = opened(lib, words, kept.address, len(weights), Options(0, 0, 1, 0, plain_bytes), arrays)
    told = []
    for step in range(lib.nnd_model_num_steps(ctypes.c_void_p(model))):
        lib.nnd_table_describe(ctypes.c_void_p(table), ctypes.c_int64(step), text, ctypes.c_int64(len(text)))
        told.append(text.value.decode())
    lib.nnd_table_free(table)
    lib.nnd_model_close(model)
    return told


def run_plan(
    level: str,
    plan: tuple[bytes, bytes],
    arrays: Sequence[Array],
    shapes: Sequence[tuple[int, ...]] | None = None,
    *,
    symbols: Sequence[int] = (),
    threads: int = 1,
    l2_bytes: int = 0,
    buffer_bytes: int = 0,
    plain_bytes: bool = False,
    shares_all: bool = True,
    choices: ChoicesOf | None = None,
    was_packed: bool = False,
) -> list[Array]:
    """Returns the outputs, of `shapes` or as the library says; all memory ends at guard pages.

    Threads share small steps too, but where `shares_all` is taken away. `choices` as `opened` takes them. With
    `was_packed` the model is one over the image that an earlier one left, and over what that left of the weights.

    Raises:
        RefusedError: the library refuses the plan or the shapes.
        OutOfRangeError: an index is.
    """
    lib, (words, weights) = library(level), plan
    copied = Guarded(len(weights), 64)
    copied.bytes[:] = np.frombuffer(weights, np.uint8)
    options = Options(l2_bytes, buffer_bytes, threads, 0, plain_bytes, shares_all)
    open_it = partial(opened, lib, words, copied.address, len(weights), options, arrays, symbols, choices)
    image = _image_left_by(lib, options, len(weights), open_it) if was_packed else None
    model, table = open_it()
    borders = [_border(lib, table, number) for number in range(lib.nnd_model_num_outputs(ctypes.c_void_p(model)))]
    if shapes is not None:
        borders = [(dtype, shape) for (dtype, _), shape in zip(borders, shapes, strict=True)]
    arena, each = Guarded(lib.nnd_table_arena_bytes(table), 64), lib.nnd_table_scratch_bytes(table)
    scratch = Guarded(each * threads, 64)
    arena.bytes[:] = 0xFF  # not a number, wherever something is read that nobody wrote
    scratch.bytes[:] = 0xFF
    inputs = [guarded(np.ascontiguousarray(array)) for array in arrays]
    results = [guarded(np.empty(shape, dtype)) for dtype, shape in borders]
    for _, memory in results:
        memory.bytes[:] = 0xFF
    given = (ctypes.c_void_p * max(1, len(inputs)))(*(memory.address for _, memory in inputs))
    taken = (ctypes.c_void_p * max(1, len(results)))(*(memory.address for _, memory in results))
    call = Call(
        ctypes.addressof(given), ctypes.addressof(taken), arena.address, scratch.address, each, None
    )  # fmt: skip
    pool = lib.nnd_pool_make(ctypes.c_void_p(model), threads) if threads > 1 else None
    has_fault = lib.nnd_run(table, ctypes.addressof(call), pool)
    if pool:
        lib.nnd_pool_free(pool)
    lib.nnd_table_free(table)
    lib.nnd_model_close(model)
    del image  # in which the model's weights lay
    if has_fault:
        raise OutOfRangeError(call.fault_step, call.fault_at, call.fault_index, call.fault_size)
    return [array.copy() for array, _ in results]


def _image_left_by(
    lib: ctypes.CDLL, options: Options, num_weight_bytes: int, open_it: Callable[[], tuple[int, int]]
) -> Guarded:
    """Returns the image of a model that was opened and closed; the next one with `options` takes it."""
    image = Guarded(5 * num_weight_bytes + _ROOM, 64)
    options.image, options.image_bytes = image.address, image.bytes.size
    options.packs_all_late = options.gives_weights = 1
    model, table = open_it()
    options.image_bytes, options.image_is_packed = lib.nnd_model_image_bytes(ctypes.c_void_p(model)), 1
    lib.nnd_table_free(table)
    lib.nnd_model_close(model)
    return image


def scratch_bytes(
    level: str, plan: tuple[bytes, bytes], shapes: Sequence[tuple[int, ...]], *, l2_bytes: int = 0
) -> int:
    """Returns the bytes of scratch that a thread needs for float32 inputs of these shapes."""
    lib, (words, weights) = library(level), plan
    copied = Guarded(len(weights), 64)
    copied.bytes[:] = np.frombuffer(weights, np.uint8)
    arrays = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    model, table = opened(lib, words, copied.address, len(weights), Options(l2_bytes, 0, 1), arrays)
    found = int(lib.nnd_table_scratch_bytes(table))
    lib.nnd_table_free(table)
    lib.nnd_model_close(model)
    return found


def _border(lib: ctypes.CDLL, table: int, number: int) -> tuple[str, tuple[int, ...]]:
    """Returns the type and the shape of an output."""
    numbers = (ctypes.c_int64 * 10)()
    lib.nnd_table_output(ctypes.c_void_p(table), ctypes.c_int64(number), numbers)
    return DTYPE_NAMES[numbers[0]], tuple(numbers[2 : 2 + numbers[1]])


def on_each(levels: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator: one test that runs on level after level; what fails notes on which.

    As tests of their own they would be thousands, of which each takes as long to be set up as to run.
    """

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def each(**arguments: object) -> None:
            for level in levels:
                try:
                    test(level=level, **arguments)
                except BaseException as err:
                    err.add_note(f"on {level}")
                    raise

        seen = inspect.signature(test)
        parameters = [one for name, one in seen.parameters.items() if name != "level"]
        vars(each)["__signature__"] = seen.replace(parameters=parameters)
        return each

    return decorated


every_level = on_each(LEVELS_HERE)
