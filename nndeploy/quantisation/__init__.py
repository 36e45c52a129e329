# SPDX-License-Identifier: Apache-2.0
"""Quantisation: a float32 model becomes one of integers, as far as its accuracy on samples allows.

It stands between the passes and the split. Which layers stay float is decided here, by measured errors; ranges and
quantised models come from a backend that offers `Quantiser`, and run in the workers as all libraries do.
"""
