# SPDX-License-Identifier: Apache-2.0
"""Which chain a bundle gets: recipes that are worth a thought, the race between them, what was decided as a file."""
