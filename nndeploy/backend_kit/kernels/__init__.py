# SPDX-License-Identifier: Apache-2.0
"""What backends of our own operators share when they compile: rules, steps, places in memory."""
