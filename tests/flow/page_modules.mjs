// SPDX-License-Identifier: Apache-2.0
// Calls functions of the page's modules for tests: a line { module, function, given } on standard input gives a line
// { value } or { error }; byte arrays are base64 under "bytes" both ways, other values plain.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const textOf = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");
const plain = (key, value) => (ArrayBuffer.isView(value) ? { bytes: textOf(value) } : value);

async function answer(job) {
  const module = await import(pathToFileURL(job.module));
  const given = job.given.map((one) => (one?.bytes === undefined ? one : bytesOf(one.bytes)));
  return { value: module[job.function](...given) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const found = await answer(JSON.parse(line)).catch((err) => ({ error: String(err) }));
  process.stdout.write(JSON.stringify(found, plain) + "\n");
}
