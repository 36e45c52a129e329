// SPDX-License-Identifier: Apache-2.0
// Runs bundles in Node for tests: each line of standard input is a job in JSON, and gives a line with what came of it.
//
//   { package, bundles: [FILE], relaxed, threads, runs: [{ NAME: { dtype, shape, data } }], states: { INPUT: OUTPUT }, repeat }
//
// Each bundle is opened once and its runs made `repeat` times; `data` is base64, of texts and maps a list. A bundle
// gives { level, threads, runs } with the outputs of the last time, or an error; and how many bytes its memory had after the
// first time and at the end.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const KINDS = {
  float32: Float32Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array, uint8: Uint8Array, int8: Int8Array,
  float16: Uint16Array, float64: Float64Array,
};
let memory;
const { Instance } = WebAssembly;
WebAssembly.Instance = function (...given) {
  const made = new Instance(...given);
  memory = made.exports.memory ?? given[1].env.memory;
  return made;
};

const told = (err) => ({ error: { kind: err.constructor.name, code: err.code, text: err.message } });

function valueOf({ dtype, shape, data }) {
  if (Array.isArray(data)) return { data, shape };
  const bytes = Uint8Array.from(Buffer.from(data, "base64"));
  return { data: new KINDS[dtype](bytes.buffer), shape };
}

function textOf(array) {
  if (!Array.isArray(array)) return Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");
  return array.map((one) => (one instanceof Map ? [...one].map((pair) => pair.map(String)) : one));
}

function run(program, values, carried, states) {
  try {
    const given = Object.fromEntries(Object.entries(values).map(([name, one]) => [name, valueOf(one)]));
    const outputs = program.run({ ...given, ...carried });
    for (const [input, output] of Object.entries(states)) carried[input] = outputs[output];
    const types = Object.fromEntries(program.outputs.map((one) => [one.name, one.dtype]));
    const plain = ([name, one]) => [name, { dtype: types[name], shape: one.shape, data: textOf(one) }];
    return Object.fromEntries(Object.entries(outputs).map(plain));
  } catch (err) {
    return told(err);
  }
}

async function tried(open, bundle, job) {
  try {
    const options = { relaxed: job.relaxed ?? false, threads: job.threads ?? 1 };
    const program = bundle ? await open(readFileSync(bundle), options) : await open(undefined, options);
    const found = { level: program.level, threads: program.threads, inputs: program.inputs, outputs: program.outputs };
    for (let i = 0; i < (job.repeat ?? 1); i++) {
      const carried = {};
      found.runs = job.runs.map((values) => run(program, values, carried, job.states ?? {}));
      found.memory_bytes ??= memory.buffer.byteLength;
    }
    found.memory_bytes_at_end = memory.buffer.byteLength;
    program.close();
    return found;
  } catch (err) {
    return told(err);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  const { open } = await import(pathToFileURL(job.package));
  const results = [];
  for (const bundle of job.bundles) results.push(await tried(open, bundle, job));
  process.stdout.write(JSON.stringify(results, (_, one) => (typeof one === "bigint" ? String(one) : one)) + "\n");
}
