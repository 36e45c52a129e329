# SPDX-License-Identifier: Apache-2.0
"""Static compute units that parameter tables put together: any shape in range at once, without a compiler.

`compile_units` (compile half) makes a library of units for an instruction set; `runtime` loads one, and its `Product`
runs at any first shape; `table` reads, checks and writes tables. docs/internals/units.md says what they are.
"""
