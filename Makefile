# SPDX-License-Identifier: Apache-2.0
# On a fresh machine (Linux, Python >= 3.11, make) two commands do everything: `make demo` and `make test`.
# Everything is installed into .venv, from requirements.lock, whose hashes pip checks. No root, no GPU.

.DEFAULT_GOAL := help
BIN := .venv/bin
DEMO := demo-out/digits.nnd
export ORT_DISABLE_TELEMETRY := 1# onnxruntime's Linux wheels report home unless this is set

# The first interpreter that really runs, is new enough and can make an environment: a name on PATH may be an empty shim.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
FOUND_PYTHON = $(or $(PYTHON),$(error no Python >= 3.11 with venv on PATH: install one, or name one with PYTHON=...))

.PHONY: help setup demo test check lint type layers fix conformance bench-stream bench-stream-kills bench-native-blocks bench-native-kernels bench-spine zoo zoo-cut bench-zoo bench-objective bench-native-networks bench-native-models bench-dynamic-networks bench-native-window fuzz-native-networks fuzz-native-plans bench-units bench-units-ready bench-units-elementwise bench-units-images bench-pacing bench-pacing-stream pictures-pacing bench-pace-points bench-pace-solver bench-loadgen bench-targets gpu-check golden wheel lock lowest digits clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/ready ## make .venv and install the project into it

.venv/ready: requirements.lock pyproject.toml
	$(FOUND_PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --only-binary=:all: -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## compile the digit reader, run it on PNG images; print what it read, the partition, the speed
	@mkdir -p demo-out
	$(BIN)/nndeploy compile examples/digits/digits.onnx --image examples/digits/image.toml -o $(DEMO)
	$(BIN)/nndeploy run $(DEMO) --input examples/digits/png --output -
	$(BIN)/nndeploy inspect $(DEMO)
	$(BIN)/nndeploy bench $(DEMO)

test: setup ## run the tests
	$(BIN)/pytest -n 2

check: lint type layers test ## all that CI checks

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: setup ## mypy --strict
	$(BIN)/mypy

layers: setup ## import-linter: who may import whom
	$(BIN)/lint-imports

fix: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

conformance: setup ## ONNX's own backend test suite through nndeploy, each compile shown the model alone, then the inputs too
	$(BIN)/python tests/conformance/onnx_suite.py $(ARGS)
	$(BIN)/python tests/conformance/onnx_suite.py --shown $(ARGS)

bench-spine: setup ## what a call, a load and a start cost beside ONNX Runtime
	$(BIN)/python tests/bench/bench_spine.py

zoo: build/zoo-env/ready ## export some 140 graphs, as people do, into build/zoo, in an environment of their own; ARGS="NAME ..."
	build/zoo-env/bin/python -W ignore tests/zoo/export.py --out build/zoo $(ARGS)

zoo-cut: build/zoo-env/ready ## write the small graphs of tests/zoo/graphs again
	build/zoo-env/bin/python -W ignore tests/zoo/export.py --small --again --out tests/zoo/graphs $(ARGS)

build/zoo-env/ready: tests/zoo/requirements.txt
	$(FOUND_PYTHON) -m venv build/zoo-env
	build/zoo-env/bin/pip install --quiet -r tests/zoo/requirements.txt
	@touch $@

bench-zoo: setup ## default bundles of the exported graphs and the real models: right, how fast; docs/zoo-results.md; ARGS="NAME ..."
	$(BIN)/python tests/bench/bench_zoo.py --page docs/zoo-results.md $(ARGS)

bench-objective: setup ## measured placement against every single backend, on the real models
	$(BIN)/python tests/bench/bench_objective.py

bench-native-networks: setup ## MobileNetV1 and V2 in our own CPU kernels against ONNX Runtime and OpenVINO; ARGS="..."
	$(BIN)/python tests/bench/bench_native_networks.py $(ARGS)

bench-native-models: setup ## real networks: the chosen bundle, our own CPU kernels, ONNX Runtime, OpenVINO; ARGS="..."
	$(BIN)/python tests/bench/bench_native_models.py $(ARGS)

bench-dynamic-networks: setup ## networks with dynamic inputs at 50 drawn shapes: bundles, ONNX Runtime, OpenVINO; ARGS="..."
	$(BIN)/python tests/bench/bench_dynamic_networks.py $(ARGS)

bench-native-kernels: setup ## every kernel of our own on its row of the list: time, rate, right numbers; ARGS="..."
	$(BIN)/python tests/bench/bench_native_kernels.py $(ARGS)

bench-native-blocks: setup ## separable blocks and inverted residuals against ONNX Runtime, one thread; ARGS="..."
	$(BIN)/python tests/bench/bench_native_blocks.py $(ARGS)

fuzz-native-networks: setup ## random networks of our own CPU kernels against float64, every array watched; ARGS="--count 5000 --sanitize"
	$(BIN)/python tests/unit/native_backend/fuzz_networks.py $(ARGS)

fuzz-native-plans: setup ## mutants of a bundle of our own CPU kernels, hashes made right; ARGS="BUNDLE FIRST COUNT"
	$(BIN)/python tests/fuzz/native_plan_mutants.py $(ARGS)

bench-native-window: setup ## fused against unfused over the capacity of the buffer: time, bytes, a picture; ARGS="..."
	$(BIN)/python tests/bench/bench_native_window.py $(ARGS)

bench-units: setup ## products of any first shape by static units against ONNX Runtime, OpenVINO, special builds; ARGS="..."
	$(BIN)/python tests/bench/bench_units.py $(ARGS)

bench-units-ready: setup ## a shape never seen to its first result: units, ONNX Runtime, OpenVINO, builds for it; ARGS="..."
	$(BIN)/python tests/bench/bench_units_ready.py $(ARGS)

bench-units-elementwise: setup ## element-wise chains, softmax, layer-norm at random shapes against ONNX Runtime and OpenVINO; ARGS="--quick"
	$(BIN)/python tests/bench/bench_units_elementwise.py $(ARGS)

bench-units-images: setup ## convolution, separable pairs, pooling of any first shape against ONNX Runtime, OpenVINO, own builds; ARGS="--only NAME"
	$(BIN)/python tests/bench/bench_units_images.py $(ARGS)

bench-pacing: setup ## paced runs beside nice, SCHED_IDLE, quota and SIGSTOP: load, latency, a neighbour's latency
	$(BIN)/python tests/bench/bench_pacing.py $(ARGS)

bench-pacing-stream: setup ## pipelines with and without pacing: latency of items against the cap, load, same outputs; ARGS="..."
	$(BIN)/python tests/bench/bench_pacing_stream.py $(ARGS)

bench-pace-solver: setup ## delays of 2,000 pairs: seconds of every policy on serial, inception, residual and crossed graphs; ARGS="..."
	$(BIN)/python tests/bench/bench_pace_solver.py $(ARGS)

bench-pace-points: setup ## what pace points cost in ONNX Runtime, and segments in their place, with no delay; ARGS="MODEL ..."
	$(BIN)/python tests/bench/bench_pace_points.py $(ARGS)

pictures-pacing: setup ## docs/pacing-MODEL.svg: the load of real models before and after pacing; ARGS="MODEL ..."
	$(BIN)/python tests/bench/pacing_pictures.py $(ARGS)

bench-loadgen: setup ## real models under MLPerf's LoadGen, every scenario: its verdicts; ARGS="..."
	$(BIN)/python tests/bench/bench_loadgen.py $(ARGS)

bench-targets: setup ## one bundle for an RTX 4090, a T4 and x86-64-v3, built without them: shares, seconds, bytes, twice
	$(BIN)/python tests/bench/bench_targets.py $(ARGS)

bench-stream: setup ## streams: against their slowest stage, ONNX Runtime and OpenVINO by hand, per record; ARGS="--quick"
	$(BIN)/python tests/bench/bench_stream.py $(ARGS)

bench-stream-kills: setup ## run --resume: so many kill -9 at random moments, against a run never killed; ARGS="--kills N"
	$(BIN)/python tests/bench/bench_stream_kills.py $(ARGS)

gpu-check: $(if $(wildcard build/gpu-check/bin/python),,setup) ## on a machine with an NVIDIA GPU: conformance, numbers and speed of the GPU tiers; ARGS="..."
	$(firstword $(wildcard build/gpu-check/bin/python) $(BIN)/python) tests/gpu/gpu_check.py $(ARGS)

golden: setup ## write the golden bundle again; for a new format only, an old one must stay as it is
	$(BIN)/python tests/golden/make_golden.py

wheel: setup ## build dist/*.whl and the source archive, offline
	$(BIN)/hatchling build -d dist

lock: ## write requirements.lock for pyproject.toml; keeps its versions (delete the file first to take the newest)
	$(FOUND_PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	echo hatchling | build/lock/bin/uv pip compile pyproject.toml - --extra cpu --extra openvino --extra tensorrt-rtx --extra cudnn --extra triton --extra native --extra vision --extra video --extra loadgen --extra pacing --extra dev \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o requirements.lock

lowest: ## run the tests with the oldest versions that pyproject.toml allows
	$(FOUND_PYTHON) -m venv build/lowest && build/lowest/bin/pip install --quiet uv
	build/lowest/bin/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct \
		-e '.[cpu,openvino,tensorrt-rtx,cudnn,triton,native,vision,video,loadgen,pacing,dev]' 'hatchling>=1.27'
	build/lowest/bin/pytest -n 2

digits: ## train the demo's network again, in an environment of its own
	$(FOUND_PYTHON) -m venv build/train && build/train/bin/pip install --quiet torch==2.13.0 scikit-learn onnx pillow
	build/train/bin/python examples/digits/train.py

clean: ## remove what make made, except .venv
	rm -rf build dist demo-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
