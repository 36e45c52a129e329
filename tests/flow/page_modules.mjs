// SPDX-License-Identifier: Apache-2.0
// Calls a function of the page's modules for tests: { module, function, given } as JSON on standard input; byte arrays
// are base64 under "bytes" both ways, other values plain.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const job = JSON.parse(readFileSync(0, "utf8"));
const module = await import(pathToFileURL(job.module));
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const textOf = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");
const given = job.given.map((one) => (one?.bytes === undefined ? one : bytesOf(one.bytes)));
const plain = (key, value) => (ArrayBuffer.isView(value) ? { bytes: textOf(value) } : value);
process.stdout.write(JSON.stringify(module[job.function](...given), plain));
