# SPDX-License-Identifier: Apache-2.0
"""How often a damaged picture of H.264 over RTP is taken for a whole one: each of many connections loses one packet.

    python tests/bench/bench_h264_losses.py [--losses 120]

A camera on the loopback sends 8 pictures of 640 x 360 in two groups, in packets of 1400 bytes, of which one is left out
each time: any but the first of a picture's, whose loss is the loss of the whole. Each frame that comes is compared with
what the encoder's packets decode to.
"""

import argparse
import contextlib
import random
import sys

import figures
import numpy as np

sys.path.append(str(figures.ROOT / "tests" / "unit" / "stream"))

import av
import h264_over_rtp
from h264_over_rtp import H264Camera, clip

from nndeploy.errors import InputError, InputOutputError
from nndeploy.stream.sources.addresses import address_from_text
from nndeploy.stream.sources.live_video import live_frames
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.stopping import Stop

CODERS = {"CABAC": "", "CAVLC (as in the Baseline profile)": "cabac=0"}


def tiles(number: int) -> np.ndarray:
    """Returns an image of coloured tiles, which move."""
    colours = np.random.default_rng(0).integers(0, 255, (45, 80, 3), np.uint8)
    return np.ascontiguousarray(np.roll(colours.repeat(8, 0).repeat(8, 1), (number, 2 * number), (0, 1)))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description="damaged pictures that are taken for whole ones")
    parser.add_argument("--losses", type=int, default=120)
    options = parser.parse_args()
    h264_over_rtp.HEIGHT, h264_over_rtp.WIDTH, h264_over_rtp.moving_image = 360, 640, tiles
    print(f"libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}, {options.losses} losses\n")
    print("| | whole frames | damaged ones taken for whole | errors | before the first |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, more in CODERS.items():
        made = clip(num=8, group=4, more=more)
        whole, damaged, errors, figures_of = 0, 0, 0, SourceFigures("camera")
        for image in frames(made, options.losses, figures_of):
            if image is None:
                errors += 1
            elif any(np.array_equal(image, known) for known in made.images):
                whole += 1
            else:
                damaged += 1
        print(f"| {name} | {whole} | {damaged} | {errors} | {figures_of.num_skipped} |", flush=True)


def frames(made, num_losses, figures_of):
    """Yields what comes of connections that each lose a packet: images, and None for an error."""
    dice = random.Random(1)  # noqa: S311 - no secret
    pictures = made.packets(payload_bytes=1400)
    long_ones = [number for number, picture in enumerate(pictures) if len(picture) > 1]
    sessions = []
    for _ in range(num_losses):
        number = dice.choice(long_ones)
        lost = dice.randrange(1, len(pictures[number]))
        left = [packet for i, packet in enumerate(pictures[number]) if i != lost]
        sessions.append([*pictures[:number], left, *pictures[number + 1 :]])
    camera, stop = H264Camera(made, sessions), Stop()
    address, rules = address_from_text(f"rtsp://127.0.0.1:{camera.port}/"), ReadRules(reconnect=1)
    assert address is not None
    with contextlib.suppress(InputOutputError):  # the camera is gone
        for item in live_frames(address, rules, stop, figures_of):
            try:
                yield item.load()["image"]
            except InputError:
                yield None
    camera.close()


if __name__ == "__main__":
    main()
