# SPDX-License-Identifier: Apache-2.0
"""Plans and what they achieved, as text, tables, pages and plain data."""
