// SPDX-License-Identifier: Apache-2.0
// Runs bundles of nndeploy in browsers, Node and Deno: a thin layer over the C interface (`runtime/nndeploy.h`).
//
// Each program has an instance of the WebAssembly module, and so a memory, of its own: what it took is free when nobody
// holds the program any more. Values are copied in and out; the memory of an input is kept for the next run.

const DTYPES = ["float32", "int32", "int64", "bool", "uint8", "int8", "float16", "float64", "text"];
const ARRAYS = [Float32Array, Int32Array, BigInt64Array, Uint8Array, Uint8Array, Int8Array, Uint16Array, Float64Array];
const TEXT = DTYPES.indexOf("text");
const BAD_DATA = 65, INTERNAL = 70, NO_MEMORY = 71;

// Sizes and places of the structures of nndeploy.h, where addresses have 32 bits.
const ERROR_BYTES = 404, INFO = { name: 0, dtype: 4, rank: 8, shape: 12 };
const TENSOR_BYTES = 16, TENSOR = { dtype: 0, rank: 4, shape: 8, data: 12 };
const MAX_RANK = 8, MOST_BYTES = 2 ** 31 - 1;

/** What went wrong: one line, and the code that the command `nndeploy run` would end with. */
export class NndeployError extends Error {
  constructor(message, code) {
    super(message);
    this.name = "NndeployError";
    this.code = code;
  }
}

const bad = (message) => new NndeployError(message, BAD_DATA);

// `nndeploy export` puts a bundle and the modules here: { bundle, modules: { LEVEL: ... } }, each as gzip in base64.
const EMBEDDED = null;

// (module (func (result v128) (f32x4.relaxed_madd (local.get 0) (local.get 0) (local.get 0)) over a v128 parameter)
const RELAXED = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 123, 1, 123, 3, 2, 1, 0, 10, 13, 1, 11, 0, 32, 0, 32, 0, 32, 0, 253, 133,
  2, 11,
);

/** Whether this engine has relaxed SIMD, whose products are added without being rounded before. */
export const hasRelaxedSimd = WebAssembly.validate(RELAXED);

const installed = new Map(); // level -> the module, compiled once

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function bytesAt(url) {
  if (url.protocol === "file:" && globalThis.process?.versions?.node) {
    const fs = "node:fs/promises"; // a name that bundlers for browsers do not follow
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ fs)).readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new NndeployError(`${url}: ${response.status} ${response.statusText}`, 66);
  return response.arrayBuffer();
}

// Each address stands in full: by these bundlers find the files.
const BESIDE = {
  "simd128": () => new URL("./nndeploy-simd128.wasm", import.meta.url),
  "simd128-threads": () => new URL("./nndeploy-simd128-threads.wasm", import.meta.url),
  "relaxed-simd": () => new URL("./nndeploy-relaxed-simd.wasm", import.meta.url),
  "relaxed-simd-threads": () => new URL("./nndeploy-relaxed-simd-threads.wasm", import.meta.url),
};

function installedModule(level) {
  if (!installed.has(level)) {
    const bytes = EMBEDDED ? unpacked(EMBEDDED.modules[level]) : bytesAt(BESIDE[level]());
    const module = bytes.then((data) => WebAssembly.compile(data));
    module.catch(() => installed.delete(level));
    installed.set(level, module);
  }
  return installed.get(level);
}

async function compiled(wasm, relaxed, isShared) {
  if (wasm instanceof WebAssembly.Module) return wasm;
  const level = relaxed && hasRelaxedSimd ? "relaxed-simd" : "simd128";
  if (wasm === undefined) return installedModule(isShared ? `${level}-threads` : level);
  const isUrl = typeof wasm === "string" || wasm instanceof URL;
  return WebAssembly.compile(isUrl ? await bytesAt(new URL(wasm, globalThis.location?.href)) : wasm);
}

function bytesOf(bytes) {
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (Object.prototype.toString.call(bytes).endsWith("ArrayBuffer]")) return new Uint8Array(bytes);
  throw new TypeError("a bundle is an ArrayBuffer or a typed array");
}

const PAGE = 1 << 16, STACK_BYTES = 1 << 18;
const FIRST_BYTES = 1 << 22, ALL_BYTES = 2 ** 31; // of a memory that is shared, as its module was linked for
const isNode = Boolean(globalThis.process?.versions?.node);

// What a Worker does: it works on the memory that it is given, and never comes back.
const WORKER = `({ module, memory, stack, number }) => {
  const { exports } = new WebAssembly.Instance(module, { env: { memory, may_wait: () => 1 } });
  exports.__stack_pointer.value = stack;
  exports.nnd_web_work(number);
}`;

/** Starts a Worker with what it works on; resolves where it runs. */
async function startedWorker(given) {
  if (isNode) {
    const threads = "node:worker_threads"; // a name that bundlers for browsers do not follow
    const { Worker } = await import(/* @vite-ignore */ /* webpackIgnore: true */ threads);
    const source = `const { parentPort, workerData } = require("node:worker_threads");
      parentPort.postMessage(1); (${WORKER})(workerData);`;
    const worker = new Worker(source, { eval: true, workerData: given });
    await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    worker.unref(); // a program that is open keeps no process
    return worker;
  }
  const source = `onmessage = ({ data }) => { postMessage(1); (${WORKER})(data); };`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  await new Promise((resolve, reject) => {
    Object.assign(worker, { onmessage: resolve, onerror: reject, onmessageerror: reject });
    worker.postMessage(given);
  }).finally(() => URL.revokeObjectURL(url));
  return worker;
}

/** Whether memory may be shared here, and with it threads. */
const mayShare = () => typeof SharedArrayBuffer !== "undefined" && globalThis.crossOriginIsolated !== false;

/** Whether this thread may sleep: that of a page may not. */
const mayWait = isNode || typeof globalThis.document === "undefined";

/** The functions of an instance, and its memory. */
class Library {
  constructor(module, memory) {
    const env = memory && { memory, may_wait: () => Number(mayWait) };
    const { exports } = new WebAssembly.Instance(module, env ? { env } : {});
    this.c = exports;
    this.memory = memory ?? exports.memory;
    this.threads = 1;
    this.workers = [];
    this.c._initialize();
    this.error = this.take(ERROR_BYTES);
  }

  /** Returns one whose memory Workers share, so many that there are as many threads as wanted. */
  static async withThreads(module, threads) {
    const memory = new WebAssembly.Memory({ initial: FIRST_BYTES / PAGE, maximum: ALL_BYTES / PAGE, shared: true });
    const library = new Library(module, memory), count = library.c.nnd_web_begin(threads - 1);
    try {
      for (let number = 0; number < count; number++) {
        const stack = (library.take(STACK_BYTES) + STACK_BYTES) & ~15;
        library.workers.push(await startedWorker({ module, memory, stack, number }));
      }
    } catch (err) {
      library.end();
      throw err;
    }
    library.threads = 1 + count;
    return library;
  }

  end() {
    for (const worker of this.workers) worker.terminate();
  }

  get view() { // made anew: memory that grew has another buffer
    return new DataView(this.memory.buffer);
  }

  take(size) {
    const address = size <= MOST_BYTES ? this.c.malloc(Math.max(size, 1)) >>> 0 : 0;
    if (!address) throw new NndeployError(`no memory for ${size} bytes`, NO_MEMORY);
    return address;
  }

  put(bytes) {
    const address = this.take(bytes.length);
    new Uint8Array(this.memory.buffer).set(bytes, address);
    return address;
  }

  putText(text) {
    return this.put(new TextEncoder().encode(`${text}\0`));
  }

  text(place) {
    const memory = new Uint8Array(this.memory.buffer), address = place >>> 0;
    return new TextDecoder().decode(memory.slice(address, memory.indexOf(0, address)));
  }

  /** Returns the elements of a value, and its shape. */
  value(tensor) {
    const view = this.view, rank = view.getInt32(tensor + TENSOR.rank, true);
    const shape = this.shape(view.getUint32(tensor + TENSOR.shape, true), rank);
    const count = shape.reduce((product, size) => product * size, 1);
    const dtype = view.getInt32(tensor + TENSOR.dtype, true);
    const place = count ? view.getUint32(tensor + TENSOR.data, true) : 0;
    const elements = dtype === TEXT
      ? Array.from({ length: count }, (_, i) => this.text(view.getUint32(place + 4 * i, true)))
      : new ARRAYS[dtype](this.memory.buffer, place, count).slice();
    return Object.defineProperty(elements, "shape", { value: Object.freeze(shape) });
  }

  shape(address, rank) {
    return Array.from({ length: rank }, (_, axis) => Number(this.view.getBigInt64(address + 8 * axis, true)));
  }

  /** Returns what a function of C returns, which is null or 0 where it fails. */
  must(name, ...given) {
    let result;
    try {
      result = this.c[name](...given, this.error);
    } catch (err) {
      throw new NndeployError(`the program stopped inside: ${err.message}`, INTERNAL);
    }
    if (result) return result;
    throw new NndeployError(this.text(this.error + 4), this.view.getInt32(this.error, true));
  }
}

/** Returns what is told of an input or output; `keys`: of a list of maps, where a tensor of them lies, else 0. */
function infoAt(library, place, keys = 0) {
  const address = place >>> 0; // engines give addresses as signed numbers
  const rank = library.view.getInt32(address + INFO.rank, true);
  const shape = library.shape(library.view.getUint32(address + INFO.shape, true), rank);
  return Object.freeze({
    name: library.text(library.view.getUint32(address + INFO.name, true)),
    dtype: DTYPES[library.view.getInt32(address + INFO.dtype, true)],
    shape: Object.freeze(keys ? shape.slice(0, 1) : shape),
    ...(keys ? { keys: Object.freeze([...library.value(keys >>> 0)]) } : {}),
  });
}

const isElements = (value) => ArrayBuffer.isView(value) || Array.isArray(value);

/** Returns the dtype of an array for an input: arrays of 8 and 16 bits are what the input is. */
function dtypeOf(array, info) {
  if (Array.isArray(array) && array.every((one) => typeof one === "string")) return TEXT;
  const kind = Object.prototype.toString.call(array).slice(8, -1);
  if (info.dtype === "bool" && kind === "Uint8Array") return DTYPES.indexOf("bool");
  if (kind === "Float16Array") return DTYPES.indexOf("float16");
  if (kind === "Uint8ClampedArray") return DTYPES.indexOf("uint8");
  const found = ARRAYS.findIndex((one, i) => one.name === kind && DTYPES[i] !== "bool");
  const wanted = info.dtype === "text" ? "an array of strings" : `a typed array of ${info.dtype}`;
  if (found < 0) throw bad(`input '${info.name}' must be ${wanted}, got ${kind}`);
  return found;
}

/** Returns texts as UTF-8 that ends at a zero. */
function encodedTexts(texts, name) {
  return texts.map((text) => {
    if (text.includes("\0")) throw bad(`input '${name}' holds a zero character`);
    if (text.isWellFormed?.() === false) throw bad(`input '${name}' holds half a character, which UTF-8 has not`);
    return new TextEncoder().encode(`${text}\0`);
  });
}

/** Returns what lies at `address` for C: the addresses of texts, and the texts behind these. */
function placedTexts(encoded, address, size) {
  const bytes = new Uint8Array(size), view = new DataView(bytes.buffer);
  let at = 4 * encoded.length;
  encoded.forEach((one, i) => {
    view.setUint32(4 * i, address + at, true);
    bytes.set(one, at);
    at += one.length;
  });
  return bytes;
}

/** Returns the shape of an array whose only open size follows from its length. */
function shapeFor(info, length) {
  const open = info.shape.filter((size) => size < 0).length;
  const known = info.shape.reduce((product, size) => (size < 0 ? product : product * size), 1);
  if (open > 1) throw bad(`input '${info.name}' has ${open} open sizes (hint: give { data, shape })`);
  if (open ? known === 0 || length % known : length !== known) {
    throw bad(`input '${info.name}' has ${length} elements, which are no [${info.shape.map(sizeText)}]`);
  }
  return info.shape.map((size) => (size < 0 ? length / known : size));
}

const sizeText = (size) => (size < 0 ? "?" : String(size));

class Program {
  #library; #program; #call; #tensor; #outputNames;
  #buffers = new Map(); // of each input that was given: where its name, its shape and its data lie
  #given = new Set();

  constructor(library, bundle) {
    const address = library.put(bundle), options = library.take(4);
    library.view.setInt32(options, library.threads, true);
    this.#library = library;
    this.#program = library.must("nnd_open_memory", address, BigInt(bundle.length), options);
    library.c.free(address);
    library.c.free(options);
    this.#tensor = library.take(TENSOR_BYTES);
    this.#call = library.must("nnd_call_new", this.#program);
    const listed = (count, make) => Object.freeze(Array.from({ length: count }, (_, i) => make(this.#program, i)));
    this.name = library.text(library.c.nnd_model_name(this.#program));
    this.level = library.text(library.c.nnd_level(this.#program));
    this.threads = library.threads;
    const { nnd_num_inputs, nnd_num_outputs, nnd_input, nnd_output, nnd_output_keys } = library.c;
    this.inputs = listed(nnd_num_inputs(this.#program), (...at) => infoAt(library, nnd_input(...at)));
    this.outputs = listed(nnd_num_outputs(this.#program), (...at) =>
      infoAt(library, nnd_output(...at), nnd_output_keys(...at)));
    this.#outputNames = this.outputs.map((one) => library.putText(one.name));
  }

  run(inputs) {
    const library = this.#open();
    const names = Object.keys(inputs);
    if ([...this.#given].some((name) => !names.includes(name))) this.#forget();
    for (const name of names) this.#set(name, inputs[name]);
    library.must("nnd_run", this.#call);
    return Object.fromEntries(this.outputs.map((one, i) => [one.name, this.#output(i)]));
  }

  close() {
    this.#library?.end();
    this.#library = undefined;
    this.#buffers.clear();
  }

  #open() {
    if (!this.#library) throw bad("the program is closed");
    return this.#library;
  }

  /** Begins a call without the values of the last one. */
  #forget() {
    const library = this.#library;
    library.c.nnd_call_free(this.#call);
    this.#given.clear();
    this.#call = library.must("nnd_call_new", this.#program);
  }

  #set(name, value) {
    const library = this.#library, info = this.inputs.find((one) => one.name === name);
    if (!info) throw bad(`no input is named '${name}' (hint: known: ${this.inputs.map((one) => one.name).join(", ")})`);
    const array = isElements(value) ? value : value?.data;
    if (!isElements(array)) throw bad(`input '${name}' must be an array, or { data, shape }`);
    const shape = Array.from(value.shape ?? shapeFor(info, array.length)), dtype = dtypeOf(array, info);
    const count = shape.reduce((product, size) => product * size, 1);
    if (shape.length > MAX_RANK || !shape.every((size) => Number.isSafeInteger(size) && size >= 0)) {
      throw bad(`input '${name}': [${shape}] is no shape`);
    }
    if (count !== array.length) {
      throw bad(`input '${name}' has ${array.length} elements instead of the ${count} of [${shape}]`);
    }
    const texts = dtype === TEXT ? encodedTexts(array, name) : undefined;
    const buffer = this.#buffer(name, texts?.reduce((sum, one) => sum + 4 + one.length, 0) ?? array.byteLength);
    const bytes = texts ? placedTexts(texts, buffer.data, buffer.size) : bytesOf(array);
    new Uint8Array(library.memory.buffer).set(bytes, buffer.data);
    shape.forEach((size, axis) => library.view.setBigInt64(buffer.shape + 8 * axis, BigInt(size), true));
    const tensor = this.#tensor;
    library.view.setInt32(tensor + TENSOR.dtype, dtype, true);
    library.view.setInt32(tensor + TENSOR.rank, shape.length, true);
    library.view.setUint32(tensor + TENSOR.shape, buffer.shape, true);
    library.view.setUint32(tensor + TENSOR.data, buffer.data, true);
    library.must("nnd_set_input", this.#call, buffer.name, tensor);
    this.#given.add(name);
  }

  /** Returns where an input of so many bytes lies. */
  #buffer(name, size) {
    const library = this.#library;
    let buffer = this.#buffers.get(name);
    if (!buffer) {
      buffer = { name: library.putText(name), shape: library.take(8 * MAX_RANK), data: 0, size: -1 };
      this.#buffers.set(name, buffer);
    }
    if (size > buffer.size) {
      library.c.free(buffer.data);
      Object.assign(buffer, { data: 0, size: -1 });
      Object.assign(buffer, { data: library.take(size), size });
    }
    return buffer;
  }

  #output(number) {
    const library = this.#library, tensor = this.#tensor;
    library.must("nnd_get_output", this.#call, this.#outputNames[number], tensor);
    const found = library.value(tensor), { keys } = this.outputs[number];
    if (!keys) return found;
    const row = (_, i) => new Map(keys.map((key, j) => [key, found[i * keys.length + j]]));
    return Object.defineProperty(Array.from({ length: found.shape[0] }, row), "shape", {
      value: Object.freeze(found.shape.slice(0, 1)),
    });
  }
}

/** Returns the functions for a program on some threads; on one where threads cannot be had. */
async function libraryFor(wasm, relaxed, threads) {
  if (threads > 1 && !EMBEDDED && mayShare()) {
    const module = await compiled(wasm, relaxed, true);
    try {
      return await Library.withThreads(module, threads);
    } catch (err) {
      if (wasm !== undefined) throw err; // its module takes no other memory
    }
  }
  return new Library(await compiled(wasm, relaxed, false));
}

/** Opens a bundle; without one, that of this file, where `nndeploy export` made it. */
export async function open(bytes, { relaxed = true, threads = 1, wasm } = {}) {
  const bundle = bytesOf(bytes ?? (EMBEDDED ? await unpacked(EMBEDDED.bundle) : bytes));
  const library = await libraryFor(wasm, relaxed, threads);
  try {
    return new Program(library, bundle);
  } catch (err) {
    library.end();
    throw err;
  }
}
