# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes -> steps: one rule for each operator, in families; `table.py` lists them all.

A rule reads its node through the `Context`, which hands out views of the inputs and takes the steps. Operators that
only rearrange (Reshape, Transpose, Slice, Expand, ...) change views and make no step; a copy is made where a later
rule needs dense memory. A rule says no by raising `BuildRefusedError`, which becomes the node's reason.
"""
