// SPDX-License-Identifier: Apache-2.0
// Opens a page in Chromium for tests: a job as JSON on standard input, what the page shows as JSON on standard output.
//
//   { playwright, chromium, page, steps: [{ file, text, size, draw, run, read }] }
//
// A step gives a file or a text to the first input, sets the first size, draws a line, runs the model, or reads an
// element's text, once it has one. What runs show and reads find comes in order.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const job = JSON.parse(readFileSync(0, "utf8"));
const { chromium } = createRequire(import.meta.url)(job.playwright);
const browser = await chromium.launch({ executablePath: job.chromium, args: ["--no-sandbox"] });
const page = await browser.newPage(), requests = [], errors = [];
page.on("request", (request) => request.url().startsWith("data:") || requests.push(request.url()));
page.on("pageerror", (error) => errors.push(error.message));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
await page.goto(job.page);
await page.waitForFunction(
  () => !document.getElementById("run")?.disabled || document.getElementById("error").textContent);

async function draw([fromX, fromY, toX, toY]) {
  const box = await page.locator("canvas").boundingBox();
  const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(fromX, fromY));
  await page.mouse.down();
  await page.mouse.move(...at(toX, toY), { steps: 20 });
  await page.mouse.up();
}

const shown = [];
for (const step of job.steps) {
  if (step.file) {
    await page.setInputFiles("input[type=file]", step.file);
    await page.waitForTimeout(300); // the image is decoded
  }
  if (step.text !== undefined) await page.fill("textarea", step.text);
  if (step.size !== undefined) await page.fill("input[type=number]", String(step.size));
  if (step.draw) await draw(step.draw);
  if (step.read) {
    await page.waitForFunction((selector) => document.querySelector(selector).textContent, step.read);
    shown.push(await page.textContent(step.read));
  }
  if (!step.run) continue;
  await page.evaluate(() => (document.getElementById("time").textContent = ""));
  await page.click("#run");
  await page.waitForFunction(
    () => document.getElementById("time").textContent || document.getElementById("error").textContent);
  shown.push(await page.evaluate(() => ({
    facts: document.getElementById("facts").textContent,
    error: document.getElementById("error").textContent,
    outputs: [...document.querySelectorAll("[data-output]")].map((part) => ({
      name: part.dataset.output,
      tables: [...part.querySelectorAll("table")].map((table) =>
        [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))),
    })),
  })));
}
await browser.close();
process.stdout.write(JSON.stringify({ shown, requests, errors }));
