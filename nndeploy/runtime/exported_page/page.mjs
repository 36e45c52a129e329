// SPDX-License-Identifier: Apache-2.0
// The page of an exported bundle: a form for its inputs, tables of its outputs. It loads nothing.
import { open } from "./nndeploy.mjs";
import { fromNpy, isNpy, toNpy } from "./npy.mjs";
import { imageInput } from "./pixels.mjs";

const KINDS = {
  float32: Float32Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array, uint8: Uint8Array, int8: Int8Array,
  float16: Uint16Array, float64: Float64Array,
};
const MOST_ROWS = 1000, TOP = 5, LEAST_CANVAS = 256;
const image = JSON.parse(document.getElementById("image-input").textContent);
const byId = (id) => document.getElementById(id);

function add(parent, tag, text = "", attributes = {}) {
  const element = Object.assign(document.createElement(tag), attributes);
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

const typeText = ({ dtype, shape }) => `${dtype}[${shape.map((size) => (size < 0 ? "?" : size)).join(",")}]`;

/** Elements of an input whose numbers are given; images are rounded and bounded where it is of whole numbers. */
function converted(numbers, dtype) {
  if (dtype === "float32") return Float32Array.from(numbers);
  if (dtype === "float64") return Float64Array.from(numbers);
  if (dtype === "float16") throw new Error("float16 is given as a file");
  if (dtype === "int64") return BigInt64Array.from(numbers, (one) => BigInt(Math.round(one)));
  const kind = KINDS[dtype], bits = 8 * kind.BYTES_PER_ELEMENT, isSigned = dtype.startsWith("int");
  const least = isSigned ? -(2 ** (bits - 1)) : 0, most = dtype === "bool" ? 1 : least + 2 ** bits - 1;
  return kind.from(numbers, (one) => Math.min(Math.max(Math.round(one), least), most));
}

function numbersIn(text) {
  const words = text.replace(/[[\](){}]/g, " ").split(/[\s,;]+/).filter(Boolean), numbers = words.map(Number);
  const wrong = words.find((_, i) => Number.isNaN(numbers[i]) && words[i].toLowerCase() !== "nan");
  if (wrong !== undefined) throw new Error(`${wrong} is no number`);
  return numbers;
}

/** The part of the form for an input; `value` returns what is given to a run. */
class Field {
  constructor(info) {
    this.info = info;
    this.isImage = image?.name === info.name;
    const part = add(byId("inputs"), "section");
    add(part, "h3", `${info.name}  ${typeText(info)}`);
    if (this.isImage) {
      this.file = this.#labelled(part, "Image, or draw one", "input", { type: "file", accept: "image/*" });
      this.canvas = add(part, "canvas");
      add(part, "button", "Clear", { type: "button", onclick: () => this.#clear() });
      this.file.addEventListener("change", () => shown(() => this.#show()));
      this.#takeStrokes();
      this.#clear();
      return;
    }
    this.sizes = info.shape.map((size, axis) =>
      size < 0 ? this.#labelled(part, `Size of axis ${axis}`, "input", { type: "number", min: 0, value: 1 }) : null);
    this.file = this.#labelled(part, "File: .npy, or plain bytes of the elements", "input", { type: "file" });
    this.text = this.#labelled(part, "or numbers; nothing is zeros", "textarea", {});
  }

  #labelled(part, text, tag, attributes) {
    const label = add(part, "label", `${text} `);
    const element = add(label, tag, "", attributes);
    element.dataset.input = this.info.name;
    return element;
  }

  get #context() {
    return this.canvas.getContext("2d", { willReadFrequently: true });
  }

  /** Makes the canvas black, and large enough to draw on. */
  #clear() {
    const scale = Math.ceil(LEAST_CANVAS / Math.min(image.width, image.height));
    Object.assign(this.canvas, { width: image.width * scale, height: image.height * scale });
    this.#context.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  /** White strokes of a pointer. */
  #takeStrokes() {
    this.canvas.addEventListener("pointerdown", (event) => this.canvas.setPointerCapture(event.pointerId));
    this.canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      const { width, height } = this.canvas, scale = width / this.canvas.clientWidth, context = this.#context;
      Object.assign(context, { strokeStyle: "white", lineCap: "round", lineWidth: Math.min(width, height) / 8 });
      context.beginPath();
      context.moveTo((event.offsetX - event.movementX) * scale, (event.offsetY - event.movementY) * scale);
      context.lineTo(event.offsetX * scale, event.offsetY * scale);
      context.stroke();
    });
  }

  async #show() {
    const bitmap = await createImageBitmap(this.file.files[0], { premultiplyAlpha: "none" });
    Object.assign(this.canvas, { width: bitmap.width, height: bitmap.height });
    this.#context.drawImage(bitmap, 0, 0);
  }

  async value() {
    if (this.isImage) {
      const { width, height } = this.canvas;
      const { data } = this.#context.getImageData(0, 0, width, height);
      const { elements, shape } = imageInput(data, width, height, image);
      return { data: converted(elements, this.info.dtype), shape };
    }
    const { dtype } = this.info;
    const shape = this.info.shape.map((size, axis) => (size < 0 ? Number(this.sizes[axis].value) : size));
    const open = this.info.shape.filter((size) => size < 0).length;
    if (this.file.files.length) {
      const bytes = new Uint8Array(await this.file.files[0].arrayBuffer());
      const given = isNpy(bytes) ? fromNpy(bytes, dtype) : { bytes };
      if (given.bytes.length % KINDS[dtype].BYTES_PER_ELEMENT) throw new Error("the file ends within an element");
      const data = new KINDS[dtype](given.bytes.buffer);
      return given.shape || open > 1 ? { data, shape: given.shape ?? shape } : data;
    }
    const numbers = numbersIn(this.text.value);
    if (!numbers.length) return { data: new KINDS[dtype](shape.reduce((all, size) => all * size, 1)), shape };
    return open > 1 ? { data: converted(numbers, dtype), shape } : converted(numbers, dtype);
  }
}

/** Probabilities of scores, which are such already or are made so by a softmax. */
function probabilities(scores) {
  const all = scores.reduce((sum, one) => sum + one, 0), most = Math.max(...scores);
  if (Math.min(...scores) >= 0 && Math.abs(all - 1) < 1e-3) return scores;
  const powers = scores.map((one) => Math.exp(one - most)), sum = powers.reduce((total, one) => total + one, 0);
  return powers.map((one) => one / sum);
}

/** The float16 of some bits. */
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24);
}

/** The shortest number that is this float32. */
function floatText(value) {
  const digits = [6, 7, 8, 9].find((count) => Math.fround(Number(value.toPrecision(count))) === value);
  return digits ? String(Number(value.toPrecision(digits))) : String(value);
}

function addTable(parent, heads, rows) {
  const table = add(add(parent, "div", "", { className: "rows" }), "table"), body = add(table, "tbody");
  const head = add(table.createTHead(), "tr");
  heads.forEach((one, i) => add(head, "th", one, { className: i ? "num" : "" }));
  for (const row of rows) {
    const line = add(body, "tr");
    row.forEach((one, i) => add(line, "td", String(one), { className: i ? "num" : "name" }));
  }
  return table;
}

function addOutput(info, value, isFirst) {
  const part = add(byId("outputs"), "section");
  part.dataset.output = info.name;
  add(part, "h3", `${info.name}  ${typeText({ dtype: info.dtype, shape: value.shape })}`);
  const plain = Array.from(value.subarray(0, MOST_ROWS), info.dtype === "float16" ? fromHalf : Number);
  const written = info.dtype === "float32" ? plain.map(floatText) : plain;
  const labels = isFirst && image?.labels.length === value.length ? image.labels : null;
  const isScores = labels || (info.dtype === "float32" && value.length > 1 && value.length === value.shape.at(-1));
  if (isScores && value.length <= MOST_ROWS) {
    const shares = labels ? probabilities(plain) : plain;
    const order = plain.map((_, i) => i).sort((a, b) => shares[b] - shares[a]).slice(0, TOP);
    const rows = order.map((i) => [labels?.[i] ?? i, labels ? `${(100 * shares[i]).toFixed(1)} %` : written[i]]);
    addTable(part, ["class", labels ? "probability" : "value"], rows).className = "top";
  }
  addTable(part, ["at", "value"], written.map((one, i) => [place(i, value.shape), one]));
  if (value.length > MOST_ROWS) add(part, "p", `the first ${MOST_ROWS} of ${value.length}`, { className: "muted" });
  const file = new Blob([toNpy(value, info.dtype, value.shape)]);
  const name = `${info.name.replace(/[^\w.-]/g, "_")}.npy`;
  add(part, "a", "Save as .npy", { href: URL.createObjectURL(file), download: name });
}

/** Where an element lies, as indices. */
function place(number, shape) {
  const indices = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    indices.unshift(number % shape[axis]);
    number = Math.floor(number / shape[axis]);
  }
  return `[${indices.join(", ")}]`;
}

/** Does something; what goes wrong is shown. */
async function shown(act) {
  byId("error").textContent = "";
  try {
    await act();
  } catch (err) {
    byId("error").textContent = err.message;
  }
}

await shown(async () => {
  const program = await open(), fields = program.inputs.map((info) => new Field(info));
  byId("facts").replaceChildren();
  add(byId("facts"), "span", `kernels ${program.level}`);
  add(byId("facts"), "span", "runs here: nothing is loaded or sent");
  byId("run").disabled = false;
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    shown(async () => {
      const values = {};
      for (const field of fields) values[field.info.name] = await field.value();
      const begin = performance.now(), outputs = program.run(values), took = performance.now() - begin;
      byId("outputs").replaceChildren();
      program.outputs.forEach((info, i) => addOutput(info, outputs[info.name], i === 0));
      byId("time").textContent = `${took.toFixed(2)} ms`;
    });
  });
});
