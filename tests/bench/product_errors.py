# SPDX-License-Identifier: Apache-2.0
"""How far products of float32 are from float64: as the level does them, and without tiles of AMX."""

import argparse
import ctypes
import sys

import numpy as np
from figures import ROOT
from interleaved import Array
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Tensor
from plan_calls import aligned, plan_call
from report import Report

sys.path.append(str(ROOT / "tests"))

from kernel_library import ALONE, library

ROWS, COLUMNS, INNER = 96, 100, (64, 768, 3072)
LEASTS = {"of one sign": 0.0, "of both": -1.0}
HALF_OF_LAST_BIT = 2.0**-24


def tell_errors(report: Report, lib: ctypes.CDLL, _: argparse.Namespace) -> None:
    table = report.table("k:", "numbers", "largest:", "RMS:", "mean:", "without: largest:", "RMS:", "mean:")
    for k in INNER:
        for what, least in LEASTS.items():
            numbers = np.random.default_rng(k)
            x, w = (numbers.uniform(least, 1, size).astype(np.float32) for size in ((ROWS, k), (k, COLUMNS)))
            found = [figure for one in (lib, library(ALONE)) for figure in _errors(one, x, w)]
            table.row(k, what, *(f"{figure:.2f}" for figure in found))
            report.sample(k=k, numbers=what, errors=found)
    report.text(f"{ROWS} x k by k x {COLUMNS}; errors over sum |x| |w|, in 2^-24, which is how far a float is rounded.")


def _errors(lib: ctypes.CDLL, x: Array, w: Array) -> tuple[float, float, float]:
    given, y = Tensor("x", x.shape), aligned(np.zeros((len(x), w.shape[1]), np.float32))
    plan_call(lib, [Product(Tensor("y", y.shape), View.of(given), w)], [given], Tensor("y", y.shape), [aligned(x)], y)()
    x64, w64 = x.astype(np.float64), w.astype(np.float64)
    errors = (y - x64 @ w64) / (np.abs(x64) @ np.abs(w64)) / HALF_OF_LAST_BIT
    return float(np.abs(errors).max()), float(np.sqrt(np.mean(errors**2))), float(errors.mean())
