# SPDX-License-Identifier: Apache-2.0
"""Cases of RNN, GRU and LSTM."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from oracle.cases.case import Case, Fixed, floats, one

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
T, N, IN, H = 4, 2, 3, 2
OUTPUTS = {"RNN": 2, "GRU": 2, "LSTM": 3}


def cases() -> Iterator[Case]:
    for op in GATES:
        for direction, lengths in product(("forward", "reverse", "bidirectional"), (None, [4, 2], [3, 0], [1, 4])):
            note = f"{direction} lengths={lengths}"
            yield _cell(op, note=note, direction=direction, lengths=lengths)
            if lengths is None or 0 not in lengths:
                yield _cell(op, note=f"{note} states", direction=direction, lengths=lengths, states=True)
        for lengths in (None, [2, 3]):
            yield _cell(
                op, note=f"layout=1 lengths={lengths}", layout=1, lengths=lengths, direction="bidirectional",
                states=True,
            )  # fmt: skip
            yield _cell(op, note=f"clip lengths={lengths}", clip=0.25, lengths=lengths)
        for opset, dtype in ((1, np.float32), (7, np.float32), (14, np.float64), (22, np.float16), (22, np.float64)):
            yield _cell(op, opset, note=f"{np.dtype(dtype).name} lengths", dtype=dtype, lengths=[4, 3])
        yield _cell(op, note="no bias", bias=False)
        yield _cell(op, note="weights are inputs", fixed=False)
        yield _cell(op, note="only the last state", outputs=["", "h"])
        yield _cell(op, note="only the sequence", outputs=["y"])
        yield _cell(op, note="one step", steps=1)
        yield _cell(op, note="no step", steps=0)
        yield _cell(op, note="one batch reversed", batch=1, direction="reverse")
    yield from _activations()
    yield _cell("GRU", note="linear_before_reset", linear_before_reset=1)
    yield _cell(
        "GRU", note="linear_before_reset lengths", linear_before_reset=1, lengths=[2, 4], direction="bidirectional"
    )
    yield _cell("LSTM", note="peepholes", peepholes=True)
    yield _cell("LSTM", note="peepholes bidirectional clip", peepholes=True, direction="bidirectional", clip=2.0)
    yield _cell("LSTM", note="input_forget", input_forget=1)
    yield _cell("GRU", 3, note="lengths", lengths=[1, 4])


def _activations() -> Iterator[Case]:
    for op, usual in (("RNN", ["Tanh"]), ("GRU", ["Sigmoid", "Tanh"]), ("LSTM", ["Sigmoid", "Tanh", "Tanh"])):
        for name in ("Relu", "Softsign", "Softplus", "LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu"):
            yield _cell(op, note=f"activation {name}", activations=[name, *usual[1:]])
        for name, alpha, beta in (
            ("LeakyRelu", 0.5, None), ("Affine", 0.5, 0.25), ("ScaledTanh", 1.5, 0.5), ("HardSigmoid", 0.5, 0.25),
            ("Elu", 2.0, None), ("ThresholdedRelu", 0.25, None),
        ):  # fmt: skip
            note = f"activation {name} {alpha} {beta}"
            betas = None if beta is None else [beta]
            yield _cell(op, note=note, activations=[name, *usual[1:]], activation_alpha=[alpha], activation_beta=betas)
    activations = ["Affine", "LeakyRelu", "Tanh", "Elu", "ScaledTanh", "Tanh"]
    yield _cell(
        "LSTM", note="six activations", direction="bidirectional", activations=activations,
        activation_alpha=[0.5, 0.1, 2.0, 1.5], activation_beta=[0.25, 0.5],
    )  # fmt: skip


def _cell(
    op: str, opset: int = 14, *, note: str, direction: str = "forward", lengths: Any = None, states: bool = False,
    layout: int | None = None, dtype: Any = np.float32, bias: bool = True, fixed: bool = True, outputs: Any = None,
    steps: int = T, batch: int = N, peepholes: bool = False, **attributes: Any,
) -> Case:  # fmt: skip
    gates, directions = GATES[op], 2 if direction == "bidirectional" else 1

    def weights(*shape: int) -> Any:
        value = (floats(*shape) / 4).astype(dtype)
        return Fixed(value) if fixed else value

    x = floats(*((batch, steps) if layout else (steps, batch)), IN, dtype=dtype)
    state = (batch, directions, H) if layout else (directions, batch, H)
    inputs = [x, weights(directions, gates * H, IN), weights(directions, gates * H, H)]
    inputs.append(weights(directions, 2 * gates * H) if bias else None)
    inputs.append(None if lengths is None else np.array(lengths, np.int32))
    inputs += [floats(*state, dtype=dtype) / dtype(4) if states else None for _ in range(2 if op == "LSTM" else 1)]
    if op == "LSTM":
        inputs.append(weights(directions, 3 * H) if peepholes else None)
    while inputs[-1] is None:
        inputs.pop()
    names = outputs or ["y", "h", "c"][: OUTPUTS[op]]
    return one(
        op, opset, *inputs, note=note, outputs=names, hidden_size=H, direction=direction, layout=layout, **attributes
    )  # fmt: skip
