# SPDX-License-Identifier: Apache-2.0
"""onnx-ir nodes -> steps: one rule an operator; `table.py` lists them, `context.py` is what a rule sees.

Law: a rule that does not raise when a node is lowered alone does not raise when the node stands in a submodel.
"""
