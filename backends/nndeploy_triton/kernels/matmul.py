# SPDX-License-Identifier: Apache-2.0
"""Matrix products, batched and with any strides, with an epilogue: MatMul and Gemm.

    out[b, i, j] = epilogue(sum over k of left[b, i, k] * right[b, k, j])

A batch stride of 0 broadcasts a side; swapped row and column strides transpose it.
"""

import triton
import triton.language as tl

from nndeploy_triton.kernels.programs import finish


@triton.jit
def matmul(
    out, left, right, extras, extra_strides, num_rows, num_columns, depth,
    left_batch_stride, left_row_stride, left_k_stride, right_batch_stride, right_k_stride, right_column_stride,
    EXTRAS: tl.constexpr, PROGRAM: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Writes one tile; axis 0 of the grid runs over rows, 1 over columns, 2 over the batch."""
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask, column_mask = rows < num_rows, columns < num_columns
    left += batch * left_batch_stride
    right += batch * right_batch_stride
    tile = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, depth, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < depth
        a = tl.load(
            left + rows[:, None] * left_row_stride + k[None, :] * left_k_stride,
            mask=row_mask[:, None] & k_mask[None, :],
            other=0.0,
        )
        b = tl.load(
            right + k[:, None] * right_k_stride + columns[None, :] * right_column_stride,
            mask=k_mask[:, None] & column_mask[None, :],
            other=0.0,
        )
        tile = tl.dot(a, b, tile, input_precision=PRECISION)
    tile = finish(tile, extras, extra_strides, EXTRAS, PROGRAM, batch, rows, columns, row_mask, column_mask)
    target = out + batch * num_rows * num_columns + rows[:, None] * num_columns + columns[None, :]
    tl.store(target, tile.to(out.dtype.element_ty), mask=row_mask[:, None] & column_mask[None, :])
