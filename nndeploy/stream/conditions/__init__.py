# SPDX-License-Identifier: Apache-2.0
"""Conditions on records, such as `label == 'car' and score > 0.5`: read from text, checked, asked of each record.

tokens.py       text -> tokens with their columns
parsing.py      tokens -> a checked condition
expressions.py  what a condition is made of, and what it says of a record

Nothing here evaluates a text as Python; a condition can read fields and compare them, and nothing else.
"""
