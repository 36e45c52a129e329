# SPDX-License-Identifier: Apache-2.0
"""Reading and editing graphs of onnx_ir, for passes, partitioning, own kernels and backends alike.

nodes.py, operators.py, node_parameters.py  what a node is, reads and is told, whatever the opset
constants.py, linear_filter.py, batchnorm.py, zero_pad.py  constants, and operators seen as simpler things
known_sizes.py, infer_sizes.py  sizes that depend on the inputs, through a graph
arithmetic_sizes.py, image_sizes.py, movement_sizes.py  the rules of its operators
edits.py, invariants.py  the ways to change a graph, and what must hold after each
regions.py, submodels.py  groups of nodes, and such a group as a model of its own
onnx_types.py, operator_rules.py  types of ONNX as ours; which operators a model may use
"""
