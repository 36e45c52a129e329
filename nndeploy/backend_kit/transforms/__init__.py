# SPDX-License-Identifier: Apache-2.0
"""Rewrites that a backend may ask for, and what they need; each backend names those that help it."""
