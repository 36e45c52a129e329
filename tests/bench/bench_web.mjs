// SPDX-License-Identifier: Apache-2.0
// Runs a race of web_race.mjs, which is told as JSON on standard input and prints its results as JSON:
//
//   { package, rival, model, bundle, inputs: [{ name, dtype, shape, file }], rounds, seconds, threads, isWall, playwright,
//     chromium }
//
// in Node; where `chromium` is told, in that browser, by a page of a server here.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const TYPES = { html: "text/html", mjs: "text/javascript", js: "text/javascript", wasm: "application/wasm" };
const job = JSON.parse(readFileSync(0, "utf8"));
const required = createRequire(import.meta.url);

async function inNode() {
  const { race } = await import("./web_race.mjs");
  const library = await import(pathToFileURL(`${job.package}/nndeploy.mjs`));
  const ort = required(`${job.rival}/dist/ort.wasm.min.js`);
  return race(job, { ...library, ort, read: readFile });
}

/** Serves files by their paths on this machine, and an empty page; memory may be shared there. */
async function serve() {
  const server = createServer(async ({ url }, response) => {
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    if (url === "/") return response.setHeader("Content-Type", TYPES.html).end("<!doctype html>");
    const path = decodeURIComponent(url);
    response.setHeader("Content-Type", TYPES[path.split(".").at(-1)] ?? "application/octet-stream");
    return readFile(path).then((data) => response.end(data), () => response.writeHead(404).end());
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${server.address().port}`;
}

async function inChromium() {
  const { chromium } = required(job.playwright);
  const browser = await chromium.launch({ executablePath: job.chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  await page.goto(await serve());
  const here = fileURLToPath(new URL("./web_race.mjs", import.meta.url));
  const results = await page.evaluate(async ([told, script]) => {
    const { race } = await import(script);
    const library = await import(`${told.package}/nndeploy.mjs`);
    const ort = await import(`${told.rival}/dist/ort.wasm.min.mjs`);
    const read = async (file) => new Uint8Array(await (await fetch(file)).arrayBuffer());
    return race(told, { open: library.open, hasRelaxedSimd: library.hasRelaxedSimd, ort, read });
  }, [job, here]);
  await browser.close();
  return results;
}

process.stdout.write(JSON.stringify(job.chromium ? await inChromium() : await inNode()));
process.exit(0); // onnxruntime-web leaves something running, and the server listens
