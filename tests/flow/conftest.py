# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the flow tests."""

from faulty_backends import install
from served_commands import manager, served

__all__ = ["install", "manager", "served"]
