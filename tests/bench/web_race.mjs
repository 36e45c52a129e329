// SPDX-License-Identifier: Apache-2.0
// Our WebAssembly modules and onnxruntime-web on one model, turn by turn, in Node or in a browser.

const KINDS = {
  float32: Float32Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array, uint8: Uint8Array, int8: Int8Array,
};

/** The processor time of this process where it can be asked, else wall time; of several threads always that. */
function milliseconds(isWall) {
  if (isWall || !globalThis.process?.cpuUsage) return performance.now();
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

async function timed(run, { seconds, isWall }) {
  const begin = performance.now(), before = milliseconds(isWall);
  let calls = 0;
  do {
    await run();
    calls++;
  } while (performance.now() - begin < 1e3 * seconds);
  return (milliseconds(isWall) - before) / calls;
}

function difference(found, wanted) {
  let least = 0, most = 0;
  for (const [name, values] of Object.entries(wanted)) {
    values.forEach((value, i) => {
      least = Math.max(least, Math.abs(Number(value) - Number(found[name][i])));
      most = Math.max(most, Math.abs(Number(value)));
    });
  }
  return least / most;
}

async function engines({ open, hasRelaxedSimd, ort, bundle, model, inputs, threads }) {
  const values = Object.fromEntries(inputs.map(({ name, shape, data }) => [name, { data, shape }]));
  const ours = async (relaxed) => {
    const program = await open(bundle, { relaxed, threads });
    if (program.threads !== threads) throw new Error(`${program.threads} threads, not ${threads}`);
    return async () => program.run(values);
  };
  const found = hasRelaxedSimd ? { "relaxed-simd": await ours(true) } : {};
  found.simd128 = await ours(false);
  ort.env.wasm.numThreads = threads;
  const feeds = Object.fromEntries(inputs.map((one) => [one.name, new ort.Tensor(one.dtype, one.data, one.shape)]));
  try {
    const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
    found["onnxruntime-web"] = async () => {
      const outputs = await session.run(feeds);
      return Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, tensor.data]));
    };
  } catch (err) {
    console.warn(`onnxruntime-web: ${err.message}`);
  }
  return found;
}

/**
 * Returns, for each engine, the milliseconds of a call in each round, and its largest difference from the first engine
 * over the largest value. `read` returns the bytes of a file of the job.
 */
export async function race(job, { open, hasRelaxedSimd, ort, read }) {
  const inputs = [];
  for (const { name, dtype, shape, file } of job.inputs) {
    const { buffer } = Uint8Array.from(await read(file));
    inputs.push({ name, dtype, shape, data: new KINDS[dtype](buffer) });
  }
  const [bundle, model] = [await read(job.bundle), await read(job.model)];
  const running = await engines({ open, hasRelaxedSimd, ort, bundle, model, inputs, threads: job.threads });
  const results = {};
  let first;
  for (const [name, run] of Object.entries(running)) {
    first ??= await run();
    results[name] = { milliseconds: [], error: difference(await run(), first) };
    for (let warm = 0; warm < 4; warm++) await timed(run, job); // until the compiler has seen what takes long
  }
  for (let round = 0; round < job.rounds; round++) {
    for (const [name, run] of Object.entries(running)) {
      await run();
      results[name].milliseconds.push(await timed(run, job));
    }
  }
  return results;
}
