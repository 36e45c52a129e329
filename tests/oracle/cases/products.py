# SPDX-License-Identifier: Apache-2.0
"""Cases of products: matrices, Einsum, convolutions, and those of quantised values."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from oracle.cases.case import Case, Fixed, floats, integers, one

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16


def cases() -> Iterator[Case]:
    yield from _matrices()
    yield from _convolutions()
    yield from _transposed()
    yield from _other_convolutions()
    yield from _integer_products()


def _matrices() -> Iterator[Case]:
    shapes = (
        ((3, 4), (4, 2)), ((4,), (4, 2)), ((2, 3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((0, 4), (4, 2)),
        ((2, 0), (0, 3)),
    )  # fmt: skip
    for a, b in shapes:
        yield one("MatMul", 13, floats(*a), floats(*b))
    for dtype in (F64, F16, BF16):
        yield one("MatMul", 13, floats(3, 4, dtype=dtype), floats(4, 2, dtype=dtype))
    for dtype in (np.int32, np.int64, np.uint32):
        yield one("MatMul", 13, integers(3, 4, dtype=dtype, low=0), integers(4, 2, dtype=dtype, low=0))
    yield one("MatMul", 1, floats(3, 4), floats(4, 2))
    for a, b in product((0, 1), (0, 1)):
        left, right = floats(*((4, 3) if a else (3, 4))), floats(*((2, 4) if b else (4, 2)))
        yield one("Gemm", 13, left, right, floats(2), transA=a, transB=b, alpha=0.5, beta=2.0)
    for c in ((), (1,), (3, 1), (1, 2), (3, 2)):
        yield one("Gemm", 11, floats(3, 4), floats(4, 2), floats(*c))
    yield one("Gemm", 11, floats(3, 4), floats(4, 2))
    yield one("Gemm", 1, floats(3, 4), floats(4, 2), floats(2), broadcast=1)
    yield one("Gemm", 6, floats(3, 4), floats(4, 2), floats(3, 2))
    yield one("Gemm", 7, floats(3, 4), floats(4, 2), floats(3, 1))
    yield one("Gemm", 13, floats(3, 4, dtype=F64), floats(4, 2, dtype=F64), floats(2, dtype=F64), alpha=0.3)
    yield one("Gemm", 13, integers(3, 4, dtype=np.int32), integers(4, 2, dtype=np.int32), integers(2, dtype=np.int32))
    yield one("Gemm", 13, floats(3, 0), floats(0, 2), floats(2))
    for equation, sizes in (
        ("ij,jk->ik", ((2, 3), (3, 4))), ("ij->ji", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)),
        ("i,j->ij", ((2,), (3,))), ("bij,bjk", ((2, 2, 3), (2, 3, 2))), ("...ij,...jk->...ik", ((2, 2, 3), (2, 3, 2))),
        ("ij, ij ->", ((2, 3), (2, 3))), ("a...a->...", ((2, 3, 2),)), ("bA,bA->b", ((2, 3), (2, 3))),
        ("ij,jk,kl->il", ((2, 2), (2, 3), (3, 2))), ("i...->...", ((2, 3),)), ("...ij,jk->...ik", ((2, 2, 3), (3, 2))),
        ("bB", ((2, 3),)),
    ):  # fmt: skip
        yield one("Einsum", 12, *(floats(*size) for size in sizes), equation=equation)
    yield one("Einsum", 12, floats(2, 3, dtype=F64), floats(3, 2, dtype=F64), equation="ij,jk")
    yield one("Det", 11, floats(3, 3))
    yield one("Det", 22, floats(2, 2, 2))
    yield one("Det", 11, floats(2, 3, 3, dtype=F64))


def _convolutions() -> Iterator[Case]:
    w = Fixed(floats(4, 2, 3, 3))
    for pads, s, d in product(([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, 0]), (1, 2), (1, 2)):
        yield one("Conv", 11, floats(1, 2, 6, 7), w, Fixed(floats(4)), pads=pads, strides=[s, s], dilations=[d, d])
    for mode, s, k, size in product(("SAME_UPPER", "SAME_LOWER", "VALID"), (1, 2, 3), (2, 3), (5, 6)):
        yield one("Conv", 11, floats(1, 1, size, size), Fixed(floats(2, 1, k, k)), auto_pad=mode, strides=[s, s])
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        yield one("Conv", 11, floats(1, 1, 6, 6), Fixed(floats(1, 1, 2, 2)), auto_pad=mode, dilations=[2, 2])
    for groups in (2, 4):
        yield one("Conv", 11, floats(2, 4, 4, 4), Fixed(floats(4, 4 // groups, 3, 3)), group=groups, pads=[1, 1, 1, 1])
    yield one("Conv", 11, floats(1, 2, 4, 4), Fixed(floats(4, 1, 2, 2)), group=2, note="two outputs a group")
    yield one("Conv", 1, floats(1, 2, 4, 4), w, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield one("Conv", 11, floats(2, 2, 7), Fixed(floats(3, 2, 3)), strides=[2], pads=[1, 0])
    yield one("Conv", 11, floats(1, 2, 3, 4, 3), Fixed(floats(2, 2, 2, 2, 2)), pads=[0, 1, 0, 1, 0, 0])
    yield one("Conv", 11, floats(1, 2, 5, 5), floats(4, 2, 3, 3), floats(4), note="weights are inputs")
    yield one("Conv", 11, floats(1, 2, 5, 5, dtype=F64), Fixed(floats(4, 2, 3, 3, dtype=F64)))
    yield one("Conv", 22, floats(1, 2, 5, 5, dtype=F16), Fixed(floats(4, 2, 3, 3, dtype=F16)))
    yield one("Conv", 22, floats(1, 2, 5, 5, dtype=BF16), Fixed(floats(4, 2, 3, 3, dtype=BF16)))
    yield one("Conv", 11, floats(0, 2, 5, 5), w, note="no batch")


def _transposed() -> Iterator[Case]:
    w = Fixed(floats(2, 3, 3, 3))
    for pads, s, d, extra in product(([0, 0, 0, 0], [1, 0, 1, 2]), (1, 2), (1, 2), (0, 1)):
        padding = [extra, extra] if extra < max(s, d) else None
        note = f"pads={pads} s={s} d={d} extra={extra}"
        yield one(
            "ConvTranspose", 11, floats(1, 2, 3, 4), w, Fixed(floats(3)), pads=pads, strides=[s, s], dilations=[d, d],
            output_padding=padding, note=note,
        )  # fmt: skip
    for mode, s, k in product(("SAME_UPPER", "SAME_LOWER", "VALID"), (1, 2), (2, 3)):
        yield one("ConvTranspose", 11, floats(1, 1, 3, 3), Fixed(floats(1, 1, k, k)), auto_pad=mode, strides=[s, s])
    for shape, mode in (([6, 8], None), ([7, 9], None), ([7, 9], "SAME_UPPER"), ([8, 10], "SAME_LOWER")):
        yield one("ConvTranspose", 11, floats(1, 2, 3, 4), w, output_shape=shape, strides=[2, 2], auto_pad=mode)
    for groups in (2, 4):
        yield one("ConvTranspose", 11, floats(1, 4, 3, 3), Fixed(floats(4, 2, 2, 2)), group=groups, strides=[2, 2])
    yield one(
        "ConvTranspose", 11, floats(1, 4, 3, 3), Fixed(floats(4, 1, 3, 3)), Fixed(floats(4)), group=4,
        pads=[1, 1, 1, 1], strides=[2, 2], output_padding=[1, 1],
    )  # fmt: skip
    yield one("ConvTranspose", 1, floats(1, 2, 3, 4), w, strides=[2, 2])
    yield one("ConvTranspose", 11, floats(2, 2, 4), Fixed(floats(2, 3, 3)), strides=[3])
    yield one("ConvTranspose", 11, floats(1, 2, 2, 3, 2), Fixed(floats(2, 2, 2, 2, 2)), strides=[2, 1, 2])
    yield one("ConvTranspose", 11, floats(1, 2, 3, 3, dtype=F64), Fixed(floats(2, 3, 2, 2, dtype=F64)))
    yield one("ConvTranspose", 11, floats(1, 2, 3, 3), floats(2, 3, 2, 2), note="weights are inputs")


def _other_convolutions() -> Iterator[Case]:
    for groups, shifts in ((1, 1), (2, 1), (1, 2), (2, 2)):
        offset, mask = floats(1, 8 * shifts, 3, 3), np.abs(floats(1, 4 * shifts, 3, 3))
        yield one(
            "DeformConv", 19, floats(1, 4, 4, 4), floats(2, 4 // groups, 2, 2), offset, floats(2), mask, group=groups,
            offset_group=shifts,
        )  # fmt: skip
    yield one(
        "DeformConv", 22, floats(1, 1, 4, 4), floats(1, 1, 2, 2), floats(1, 8, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2]
    )
    yield one("Col2Im", 18, floats(1, 4, 9), Fixed(np.array([4, 4])), Fixed(np.array([2, 2])))
    yield one(
        "Col2Im", 18, floats(2, 8, 4), Fixed(np.array([3, 3])), Fixed(np.array([2, 2])), strides=[2, 2],
        pads=[0, 1, 1, 0],
    )  # fmt: skip
    yield one("Col2Im", 18, floats(1, 4, 4), Fixed(np.array([4, 4])), Fixed(np.array([2, 2])), dilations=[2, 2])
    for activation, past in product((None, "silu"), (False, True)):
        state = floats(2, 3, 3) if past else None
        yield one(
            "CausalConvWithState", 27, floats(2, 3, 5), floats(3, 1, 4), floats(3), *([state] if past else []),
            activation=activation, outputs=2,
        )  # fmt: skip
    yield one("CausalConvWithState", 27, floats(1, 2, 1), floats(2, 1, 4), outputs=2)


def _integer_products() -> Iterator[Case]:
    u8, i8 = np.uint8, np.int8

    def whole(*shape: int, dtype: Any) -> Any:
        return integers(*shape, dtype=dtype, low=0 if dtype is u8 else -100, high=200 if dtype is u8 else 100)

    for a, b in product((u8, i8), (u8, i8)):
        yield one("MatMulInteger", 10, whole(3, 4, dtype=a), whole(4, 2, dtype=b))
        yield one(
            "MatMulInteger", 10, whole(3, 4, dtype=a), whole(4, 2, dtype=b), Fixed(np.array(5, a)),
            Fixed(np.array(7, b)),
        )  # fmt: skip
        yield one(
            "ConvInteger", 10, whole(1, 2, 4, 4, dtype=a), whole(3, 2, 3, 3, dtype=b), Fixed(np.array(5, a)),
            Fixed(np.array(7, b)), pads=[1, 1, 1, 1],
        )  # fmt: skip
    yield one(
        "MatMulInteger", 10, whole(3, 4, dtype=u8), whole(4, 2, dtype=u8), Fixed(np.array([1, 2, 3], u8)),
        Fixed(np.array([4, 5], u8)),
    )  # fmt: skip
    yield one(
        "ConvInteger", 10, whole(1, 2, 4, 4, dtype=u8), Fixed(whole(4, 1, 2, 2, dtype=u8)), Fixed(np.array(9, u8)),
        Fixed(np.array([1, 2, 3, 4], u8)), group=2,
    )  # fmt: skip
    one_scale, zero = Fixed(np.array(0.25, F32)), Fixed(np.array(3, u8))
    for dtype in (u8, i8):
        y = Fixed(np.array(7, dtype))
        yield one(
            "QLinearMatMul", 10, whole(3, 4, dtype=u8), one_scale, zero, whole(4, 2, dtype=dtype),
            Fixed(np.array(0.125, F32)), y, Fixed(np.array(8.0, F32)), Fixed(np.array(2, dtype)),
        )  # fmt: skip
        yield one(
            "QLinearConv", 10, whole(1, 2, 4, 4, dtype=u8), one_scale, zero, Fixed(whole(4, 1, 2, 2, dtype=dtype)),
            Fixed(np.array([0.5, 0.25, 1, 2], F32)), Fixed(np.array([0, 0, 0, 0], dtype)), Fixed(np.array(64.0, F32)),
            zero, Fixed(integers(4, dtype=np.int32)), group=2, pads=[1, 1, 0, 0],
        )  # fmt: skip
