# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes: integers that depend on the sizes of a model's inputs, and how they follow through a graph."""
