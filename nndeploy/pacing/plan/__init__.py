# SPDX-License-Identifier: Apache-2.0
"""What a plan is made of, from what runs took, and the values and files that say it."""
