# SPDX-License-Identifier: Apache-2.0
"""What values are: their types, and sizes that depend on the sizes of a model's inputs.

types.py      tensors, sequences, maps and optionals; element types; ranges of sizes
size.py       symbolic sizes, as polynomials of the inputs' sizes
solving.py    the symbols' values from the shapes of a call
size_text.py  how sizes are written
amounts.py    how sizes of files and times are written
"""
