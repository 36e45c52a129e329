# SPDX-License-Identifier: Apache-2.0
"""Comparisons of outputs with the reference, and their report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.bundle.report import CheckReport
from nndeploy.checking.tolerances import tolerance_for as default_tolerance
from nndeploy.comparison.compare import EXACT, Comparison
from nndeploy.comparison.judge import judge
from nndeploy.values.types import DTYPES, Value, ValueType

SIGNIFICANT_DIGITS = 3
"""Figures in a report are rounded: further digits differ from machine to machine and say nothing."""


ROUNDING_SPAN = 1e-5
"""Sums of float32 lose about this much of the largest element: some hundred times its last bit."""

BF16_SPAN = 0.25
"""Single elements of real networks in bfloat16 are this far off, of the largest: at the edge of what was found.

Measured: OpenVINO 2026.4.1, 2026-11-20, real samples: ultraface 0.02, fastestdet 0.13, ppocr_det and ppocr_rec 0.23.
"""

_IN_BF16 = ("float16", "float32", "float64")

QUANTISED_SPAN = 2 / 255
"""Engines round a quantised value differently by a step now and then: one of 255, and one more on the way out."""

STEPPED = ("int8", "uint8", "int4", "uint4", "int2", "uint2")

_QUANTISING = frozenset({
    "QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QAttention", "QGemm",
})  # fmt: skip


def is_quantised(graph: ir.Graph) -> bool:
    """Returns whether a model computes on quantised values."""
    return any(node.op_type in _QUANTISING or node.op_type.startswith("QLinear") for node in graph.all_nodes())


def tolerances(
    rtol: float | None, atol: float | None, quantised: bool, precision: str = "fp32", has_limits: bool = False
) -> dict[str, Tolerance]:
    """Returns the tolerance of every element type; `rtol` and `atol` replace those of the floating ones.

    Where nothing was asked for and limits follow where a tolerance fails (`has_limits`), steps of quantised networks
    are left to them: a tolerance that grants every element a step cannot see a zero point that is off by one.

    An `atol` below 1 also takes the one step from 8-bit integers that quantised networks are granted. What was
    computed in bfloat16 ("bf16") may differ as much as results of that type.
    """
    asked = rtol is not None or atol is not None
    rounding = BF16_SPAN if precision == "bf16" else ROUNDING_SPAN
    by_limits = has_limits and not asked and precision == "fp32"
    span = max(QUANTISED_SPAN, rounding) if quantised and not by_limits else 0.0 if asked else rounding

    def of(dtype: str) -> Tolerance:
        default = default_tolerance("bfloat16" if dtype in _IN_BF16 and precision == "bf16" else dtype)
        if by_limits and dtype in STEPPED:
            return EXACT
        if atol is not None and dtype in ("int8", "uint8"):
            return Tolerance(0.0, min(default.atol, float(int(atol))))  # in whole steps
        if not dtype.startswith(("float", "bfloat", "complex")):
            return default
        return Tolerance(default.rtol if rtol is None else rtol, default.atol if atol is None else atol, span)

    return {dtype: of(dtype) for dtype in DTYPES}


SampleLimits = Callable[[], Sequence[Mapping[str, Limits]]]


def compare_outputs(
    scope: str,
    backend: str,
    got: Sequence[Mapping[str, Value]],
    want: Sequence[Mapping[str, Value]],
    types: Mapping[str, ValueType],
    tolerances: Mapping[str, Tolerance],
    incomparable: Mapping[str, str],
    limits: SampleLimits | None = None,
) -> list[CheckReport]:
    """Returns one comparison for each sample and output of `types`.

    Of the outputs named in `incomparable` (name -> reason) only element type and rank are compared. `limits` are asked
    for where an output is outside its tolerance: how far right engines differ on each sample.
    """
    comparable = {name: kind for name, kind in types.items() if name not in incomparable}
    reports = []
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        found = judge(g, w, comparable, tolerances, (lambda i=i: limits()[i]) if limits else dict)  # type: ignore[misc]
        others = {
            name: _of_type(g.get(name), w.get(name), incomparable[name]) for name in types.keys() - comparable.keys()
        }
        reports += [_report(scope, backend, i, name, {**found, **others}[name]) for name in types]
    return reports


def in_precision(checks: Sequence[CheckReport], precision: str) -> list[CheckReport]:
    """Returns comparisons of what was computed in `precision`; where that is not float32 they say so."""
    if precision == "fp32":
        return list(checks)
    return [replace(check, note="; ".join(filter(None, (f"computed in {precision}", check.note)))) for check in checks]


def not_compared(scope: str, backend: str, reason: str, *, absent: bool = False) -> CheckReport:
    """Returns the report of a comparison that could not be made; `absent` where what would run it is not here."""
    rule = "absent" if absent else "none"
    return CheckReport(scope, backend, 0, "", ok=True, note=f"not compared: {reason}", rule=rule)


def describe_failure(check: CheckReport) -> str:
    """Returns a failed comparison in a line."""
    return f"output {check.output!r} of sample {check.sample} differs from the original: {_figures(check)}"


def describe_difference(check: CheckReport) -> str:
    """Returns where two results differ, in a line."""
    return f"output {check.output!r} of sample {check.sample} differs: {_figures(check)}"


def _figures(check: CheckReport) -> str:
    figures = [check.note] if check.note else []
    figures += [f"max abs {check.max_abs:.3g}"] if check.max_abs is not None else []
    figures += [f"max rel {check.max_rel:.3g}"] if check.max_rel is not None else []
    return ", ".join(figures)


def _of_type(got: Value, want: Value, reason: str) -> Comparison:
    if isinstance(got, np.ndarray) and isinstance(want, np.ndarray):
        return Comparison(
            got.ndim == want.ndim and got.dtype == want.dtype, note=f"{reason}: element type and rank compared"
        )
    return Comparison(type(got) is type(want), note=f"{reason}: kind of value compared")


def _report(scope: str, backend: str, sample: int, output: str, found: Comparison) -> CheckReport:
    return CheckReport(
        scope,
        backend,
        sample,
        output,
        found.ok,
        _rounded(found.max_abs),
        _rounded(found.max_rel),
        _rounded(found.cosine, 7),
        found.note,
        found.rule,
    )


def _rounded(figure: float | None, digits: int = SIGNIFICANT_DIGITS) -> float | None:
    return None if figure is None else float(f"{figure:.{digits}g}")
