# SPDX-License-Identifier: Apache-2.0
"""A model in one operator set, without calls of functions: its nodes, those of bodies and of functions rewritten.

function_calls.py  a call -> the nodes of the function's body
surroundings.py    what is known where a node stands, and how a change writes nodes
to_seven.py        changes of operators up to version 7, and of those that were experimental
from_eight.py      changes of operators from version 8 on
changes.py         the table of all changes
one_set.py         the walk over a model
"""
