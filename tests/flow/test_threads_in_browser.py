# SPDX-License-Identifier: Apache-2.0
"""Threads of `@nndeploy/run` in a browser: on a page that is isolated as many as wanted, on any other one."""

import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node_runs import package

import nndeploy

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium (Debian's)")]

ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
PAGE = """<!doctype html><script type="module">
let found;
try {
  const { open } = await import("./nndeploy.mjs");
  const program = await open(await (await fetch("m.nnd")).arrayBuffer(), { relaxed: false, threads: 2 });
  const image = new Float32Array(64).fill(3);
  for (let i = 0; i < 20; i++) found = program.run({ image });
  found = { threads: program.threads, bits: [...new Uint32Array(found.probabilities.buffer)] };
  program.close();
} catch (err) {
  found = { error: String(err) };
}
await fetch("/found", { method: "POST", body: JSON.stringify(found) });
</script>"""


class Site(http.server.SimpleHTTPRequestHandler):
    """A folder, and what its page sends."""

    def __init__(
        self, headers: dict[str, str], found: list[Any], told: threading.Event, *given: Any, **more: Any
    ) -> None:
        self.sent, self.found, self.told = headers, found, told
        self.extensions_map = {**self.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}
        super().__init__(*given, **more)

    def end_headers(self) -> None:
        for name, value in self.sent.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        self.found.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()
        self.told.set()


@contextlib.contextmanager
def shown(folder: Path, headers: dict[str, str]) -> Iterator[list[Any]]:
    """Shows the page of a folder in Chromium; gives what it found."""
    found, told = list[Any](), threading.Event()
    site = functools.partial(Site, headers, found, told, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command = ["chromium", *flags, f"http://127.0.0.1:{server.server_port}/page.html"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            assert told.wait(120)
            browser.terminate()
        server.shutdown()
        yield found


@pytest.mark.parametrize(("headers", "threads"), [(ISOLATED, 2), ({}, 1)])
def test_an_isolated_page_runs_threads_and_gives_the_bits_of_python(
    digits, tmp_path, python_at_v2, headers, threads
) -> None:
    site = tmp_path / "site"
    shutil.copytree(package(), site)
    shutil.copyfile(digits, site / "m.nnd")
    (site / "page.html").write_text(PAGE)
    with nndeploy.load_bundle(digits, threads=threads) as program:
        wanted = program.run({"image": np.full((1, 1, 8, 8), 3, np.float32)})["probabilities"]
    with shown(site, headers) as (found,):
        assert found == {"threads": threads, "bits": wanted.view(np.uint32).ravel().tolist()}
