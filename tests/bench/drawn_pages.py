# SPDX-License-Identifier: Apache-2.0
"""Pages of which is known what stands where: words at drawn places, sizes and angles, on paper of drawn colours."""

import random
from pathlib import Path

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

SIZES = ((900, 700), (1240, 877), (877, 1240), (640, 480))
HEIGHTS = (16, 18, 20, 24, 28, 36, 48)
WORDS = (
    "Invoice", "Total", "Amount", "Delivery", "Station", "Platform", "Harbour", "Market", "Garden", "Window", "Number",
    "Street", "Ticket", "Morning", "Evening", "Reference", "Customer", "Address", "Payment", "Balance", "Departure",
    "Arrival", "Welcome", "Library", "Museum", "2026", "1,250.00", "48%", "A-17", "+44", "20", "7946", "and", "of",
    "the", "to", "with", "from",
)  # fmt: skip


def drawn_page(seed: int, path: Path) -> list[str]:
    """Writes a JPEG, each third upside down, and returns its lines; none touches another."""
    draw = random.Random(seed)  # noqa: S311 - words, not secrets
    page = PIL.Image.new("RGB", draw.choice(SIZES), tuple(draw.randint(200, 255) for _ in range(3)))
    taken: list[tuple[int, int, int, int]] = []
    lines: list[str] = []
    for _ in range(200):
        text = " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 5)))
        tile = _drawn_line(draw, text)
        if tile.width + 20 > page.width or tile.height + 20 > page.height:
            continue
        x, y = draw.randint(10, page.width - tile.width - 10), draw.randint(10, page.height - tile.height - 10)
        box = (x - 15, y - 12, x + tile.width + 15, y + tile.height + 12)
        if not any(box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in taken):
            taken.append(box)
            lines.append(text)
            page.paste(tile, (x, y), tile)
    (page.rotate(180) if seed % 3 == 0 else page).save(path, quality=90)
    return lines


def _drawn_line(draw: random.Random, text: str) -> PIL.Image.Image:
    font = PIL.ImageFont.load_default(draw.choice(HEIGHTS))
    ink = tuple(draw.randint(0, 90) for _ in range(3))
    left, top, right, bottom = map(
        int, PIL.ImageDraw.Draw(PIL.Image.new("1", (1, 1))).textbbox((0, 0), text, font=font)
    )
    tile = PIL.Image.new("RGBA", (right - left + 8, bottom - top + 8), (*ink, 0))
    PIL.ImageDraw.Draw(tile).text((4 - left, 4 - top), text, font=font, fill=(*ink, 255))
    angle = draw.choice((0, 0, 0, draw.uniform(-12, 12)))
    return tile.rotate(angle, PIL.Image.Resampling.BICUBIC, expand=True)
