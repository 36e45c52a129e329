// SPDX-License-Identifier: Apache-2.0
// Reads a digit with a bundle in Node: npm install nndeploy-run-*.tgz; node digits.mjs digits.nnd
import { readFile } from "node:fs/promises";
import { open } from "@nndeploy/run";

const [, , path] = process.argv;
const program = await open(await readFile(path));
const image = new Float32Array(64); // 8 x 8 pixels, 0 to 16: a stroke from top to bottom
for (let row = 0; row < 8; row++) image.fill(16, 8 * row + 3, 8 * row + 5);
const { probabilities } = program.run({ image });
const digit = probabilities.indexOf(Math.max(...probabilities));
console.log(`${digit}, probability ${probabilities[digit].toFixed(4)}`);
