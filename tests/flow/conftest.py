# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the flow tests."""

from faulty_backends import install

__all__ = ["install"]
