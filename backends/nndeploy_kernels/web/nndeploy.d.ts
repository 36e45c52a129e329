// SPDX-License-Identifier: Apache-2.0

export type DType = "float32" | "int32" | "int64" | "bool" | "uint8" | "int8" | "float16" | "float64" | "text";

/** Elements of a value: float16 as bits in a Uint16Array, int64 as BigInt64Array, bool as 0 and 1 in a Uint8Array. */
export type Elements = Float32Array | Int32Array | BigInt64Array | Uint8Array | Int8Array | Uint16Array | Float64Array;

/** An input or output of a program; a size that is open is -1. */
export interface Info {
  readonly name: string;
  /** Of an output that is a list of maps: that of their numbers. */
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Of an output that is a list of maps, as the scores of classifiers are. */
  readonly keys?: readonly string[] | readonly bigint[];
}

/**
 * A value of an input: elements alone, where no more than one size is open, or with their shape. An output of a run has
 * one, and may be given as it is. Uint8ClampedArray stands for uint8, Float16Array for float16.
 */
export type Input =
  | ArrayBufferView
  | readonly string[]
  | Output
  | { readonly data: ArrayBufferView | readonly string[]; readonly shape: readonly number[] };

/**
 * An output: its elements, in the order of ONNX (the last axis is contiguous), and its shape. It is the caller's. Texts
 * are an array of strings, a list of maps an array of maps.
 */
export type Output = (Elements | string[] | Map<string | bigint, number>[]) & { readonly shape: readonly number[] };

/** What went wrong: one line, and the code that `nndeploy run` would end with (65 bad data, 69 not run here, ...). */
export class NndeployError extends Error {
  readonly code: number;
}

export interface Program {
  readonly name: string;
  /** Of the kernels that run: "wasm32-simd128" or "wasm32-relaxed-simd". */
  readonly level: string;
  /** How many work on a run: 1 where memory cannot be shared. */
  readonly threads: number;
  readonly inputs: readonly Info[];
  readonly outputs: readonly Info[];
  /** Runs the program; an input with a default may be left out. Throws a NndeployError. */
  run(inputs: Readonly<Record<string, Input>>): Record<string, Output>;
  /** Gives its memory back now, and not when nobody holds the program any more. */
  close(): void;
}

export interface Options {
  /** false: sums are rounded as on every other engine without relaxed SIMD, which takes longer. Default: true. */
  relaxed?: boolean;
  /**
   * Threads of a run. More than one are Workers beside the thread that calls, where this page may share memory (it is
   * cross-origin isolated) and allows Workers of blobs. Default: 1.
   */
  threads?: number;
  /** The module, where it does not lie beside this file: compiled, its bytes, or where it is. */
  wasm?: WebAssembly.Module | ArrayBuffer | ArrayBufferView | URL | string;
}

/** Whether this engine has relaxed SIMD. */
export const hasRelaxedSimd: boolean;

/**
 * Opens a bundle that `nndeploy compile --backends native` made. In a file that `nndeploy export --for wasm` made the
 * bundle may be left out: it is the one inside. Rejects with a NndeployError.
 */
export function open(bundle?: ArrayBuffer | ArrayBufferView, options?: Options): Promise<Program>;
