# SPDX-License-Identifier: Apache-2.0
"""Splits a model over backends: who takes which node and why, regions without cycles, islands merged.

placement.py  every node -> the first backend that takes it, with every refusal's reason
regions.py    neighbouring nodes of one backend -> regions; the region graph has no cycle
islands.py    tiny regions whose crossing costs more than they gain -> a neighbour that takes them
extract.py    region -> submodel with typed inputs and outputs
kinds.py      kinds of operators by which backends differ in speed
cost_table.py measured seconds by backend, kind and size, of an instruction set: costs/*.json
speeds.py     seconds of a plan, from the cost table
cost.py       estimated compute of nodes and bytes of values, from shapes
"""
