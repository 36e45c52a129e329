# SPDX-License-Identifier: Apache-2.0
"""Compile checks itself: outputs of each submodel and of the whole against the original model.

samples.py     inputs to check with: given by the user, or sensible ones made from names, types and consumers
reference.py   what the original model gives on them, and the values at the borders between submodels
check.py       comparisons and their report
tolerances.py  how near is near enough, by element type
"""
