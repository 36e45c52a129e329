// SPDX-License-Identifier: Apache-2.0
// Pixels of a canvas -> the input that `image_input` of a bundle describes, by the arithmetic of `nndeploy run`:
//
//   channels -> resize (bilinear, as Pillow does it on bytes) -> (pixel - mean) / std -> layout
//
// to one level of 255: rows are resized before columns, Pillow may turn that round.
// Source: Pillow, src/libImaging/Resample.c and Convert.c.

const BITS = 22; // of a weight of the resampling, behind the point

/** Weights of the pixels that each pixel of a line of `size` is made of: { first, weights } for each of `wanted`. */
function resampling(size, wanted) {
  const scale = size / wanted, support = Math.max(scale, 1);
  return Array.from({ length: wanted }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - support + 0.5), 0);
    const last = Math.min(Math.trunc(centre + support + 0.5), size);
    const parts = Array.from({ length: last - first }, (_, k) =>
      Math.max(1 - Math.abs((first + k - centre + 0.5) * (1 / support)), 0));
    const all = parts.reduce((sum, part) => sum + part, 0);
    return { first, weights: parts.map((part) => Math.trunc(0.5 + (part / all) * 2 ** BITS)) };
  });
}

/** Resamples `lines` lines of `size` bytes: byte i of line n lies at n * toLine + i * toNext, the results likewise. */
function resampled(bytes, lines, size, wanted, place, placeOfResult) {
  const result = new Uint8Array(lines * wanted);
  resampling(size, wanted).forEach(({ first, weights }, i) => {
    for (let line = 0; line < lines; line++) {
      let sum = 2 ** (BITS - 1);
      weights.forEach((weight, k) => (sum += bytes[place(line, first + k)] * weight));
      result[placeOfResult(line, i)] = Math.min(Math.max(Math.floor(sum / 2 ** BITS), 0), 255);
    }
  });
  return result;
}

/** Returns one channel of bytes with other sizes. */
function resized(plane, width, height, toWidth, toHeight) {
  let bytes = plane;
  if (width !== toWidth) {
    bytes = resampled(bytes, height, width, toWidth, (y, x) => y * width + x, (y, x) => y * toWidth + x);
  }
  if (height !== toHeight) {
    bytes = resampled(bytes, toWidth, height, toHeight, (x, y) => y * toWidth + x, (x, y) => y * toWidth + x);
  }
  return bytes;
}

/** Returns the planes of bytes of RGBA pixels that an input wants. */
function planesOf(rgba, channels) {
  const plane = (at) => Uint8Array.from({ length: rgba.length / 4 }, (_, i) => at(4 * i));
  if (channels === "L") {
    return [plane((i) => (rgba[i] * 19595 + rgba[i + 1] * 38470 + rgba[i + 2] * 7471 + 0x8000) >> 16)];
  }
  return (channels === "BGR" ? [2, 1, 0] : [0, 1, 2]).map((k) => plane((i) => rgba[i + k]));
}

/** Returns { elements, shape } of an image of `width` by `height` RGBA pixels as `how` says; elements are numbers. */
export function imageInput(rgba, width, height, how) {
  const planes = planesOf(rgba, how.channels).map((one) => resized(one, width, height, how.width, how.height));
  const pixels = how.width * how.height, count = planes.length, isLast = how.layout === "NHWC";
  const elements = new Float32Array(pixels * count);
  planes.forEach((plane, k) => {
    const mean = Math.fround(how.mean[k]), std = Math.fround(how.std[k]);
    plane.forEach((byte, i) => (elements[isLast ? i * count + k : k * pixels + i] = Math.fround(byte - mean) / std));
  });
  return { elements, shape: isLast ? [1, how.height, how.width, count] : [1, count, how.height, how.width] };
}
