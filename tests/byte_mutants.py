# SPDX-License-Identifier: Apache-2.0
"""Damage of bytes: some flipped, taken out, put in, or all behind a place gone."""

import random

KINDS = 4


def mutant(data: bytes, dice: random.Random, kind: int) -> bytes:
    """Returns the data with one damage of a kind, 0 to `KINDS` - 1."""
    found, at = bytearray(data), dice.randrange(len(data))
    match kind:
        case 0:
            found[at] ^= 1 << dice.randrange(8)
        case 1:
            del found[at : at + dice.randint(1, 40)]
        case 2:
            found[at:at] = dice.randbytes(dice.randint(1, 40))
        case _:
            del found[at:]
    return bytes(found)
