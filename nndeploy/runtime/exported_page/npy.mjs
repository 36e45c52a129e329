// SPDX-License-Identifier: Apache-2.0
// Arrays as NumPy's .npy files, which hold them little-endian and in C order.

const DESCRIPTIONS = {
  float32: "<f4", int32: "<i4", int64: "<i8", bool: "|b1", uint8: "|u1", int8: "|i1", float16: "<f2", float64: "<f8",
};
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** Whether a file says that it is one. */
export function isNpy(bytes) {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}

/** Returns the bytes of the elements and the shape of a file that holds elements of `dtype`; throws an Error. */
export function fromNpy(bytes, dtype) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), isOne = bytes[6] === 1;
  const begin = isOne ? 10 : 12, end = begin + (isOne ? view.getUint16(8, true) : view.getUint32(8, true));
  const header = new TextDecoder("latin1").decode(bytes.subarray(begin, end));
  const [, found] = /'descr': *'([^']+)'/.exec(header) ?? [];
  if (found !== DESCRIPTIONS[dtype]) throw new Error(`the file holds ${found}, the input is ${dtype}`);
  if (!/'fortran_order': *False/.test(header)) throw new Error("the file is in Fortran order");
  const [, sizes] = /'shape': *\(([^)]*)\)/.exec(header) ?? [];
  return { bytes: bytes.slice(end), shape: sizes.split(",").filter((size) => size.trim()).map(Number) };
}

/** Returns the bytes of a file of elements. */
export function toNpy(elements, dtype, shape) {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${DESCRIPTIONS[dtype]}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  const file = new Uint8Array(10 + header.length + elements.byteLength);
  file.set([...MAGIC, 1, 0, header.length & 255, header.length >> 8]);
  file.set(new TextEncoder().encode(header), 10);
  file.set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength), 10 + header.length);
  return file;
}
