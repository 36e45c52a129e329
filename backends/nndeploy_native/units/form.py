# SPDX-License-Identifier: Apache-2.0
"""What of a product is known before its first shape, and whether a table is one of it."""

from dataclasses import dataclass

from nndeploy.errors import DataError
from nndeploy_native.isa import Isa
from nndeploy_native.units.table import Table
from nndeploy_native.units.unit_list import DOT, NAMES, PACK_INPUT, PACK_WEIGHTS, PACKING, THIN


@dataclass(frozen=True, slots=True)
class Form:
    """`k` and `n` are 0 where all three dimensions are dynamic; strided: not contiguous along the last axis."""

    k: int = 0
    n: int = 0
    activation: str = "none"
    input_is_strided: bool = False
    weights_are_strided: bool = False


def check_form(table: Table, form: Form, *, constant_weights: bool, isa: Isa) -> None:
    """Passes a table, which `check_table` has passed, that is one of a product's form.

    Raises:
        DataError: it is of another product, or leaves unpacked what the product's units cannot read in place.
    """
    if any(row.unit not in NAMES for row in table.rows):
        raise DataError("a table that is of no product")
    products = [row for row in table.rows if row.unit not in PACKING]
    if form.n and table.first[1:] != (form.n, form.k):
        raise DataError(f"a table of N, K {table.first[1:]} for a product of {(form.n, form.k)}")
    if products[0].activation != form.activation:
        raise DataError(f"a table that ends in {products[0].activation} for a product that ends in {form.activation}")
    reads_strides = any(row.unit in (PACK_INPUT, THIN) for row in table.rows)
    if form.input_is_strided and not reads_strides:
        raise DataError("a table that does not pack an input with strides")
    packed = [row.offset[1] for row in table.rows if row.unit == PACK_WEIGHTS]
    if constant_weights:
        if packed:
            raise DataError("a table that packs constant weights")
        return
    for row in products:
        in_place = not packed or packed[0] > row.offset[1]
        whole = (row.length[1] % (isa.panel * isa.lanes) == 0 and row.unit != DOT) or row.unit == THIN
        if in_place and (form.weights_are_strided or not whole):
            raise DataError(f"a table that does not pack the columns from {row.offset[1]} on")
