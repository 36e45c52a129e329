# SPDX-License-Identifier: Apache-2.0
"""Bundles on a box, by name: installed, replaced, rolled back, and followed by who runs them."""
