# SPDX-License-Identifier: Apache-2.0
# On a fresh machine (Linux, Python >= 3.11, make) two commands do everything: `make demo` and `make test`.
# Everything is installed into .venv, from requirements.lock, whose hashes pip checks (the demo alone into
# build/demo-env, from requirements-demo.lock). No root, no GPU.

.DEFAULT_GOAL := help
BIN := .venv/bin
C_SOURCES = $(shell find backends examples tests -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp')
DEMO := demo-out/digits.nnd
DEMO_BIN = $(if $(wildcard .venv/ready),.venv,build/demo-env)/bin
export ORT_DISABLE_TELEMETRY := 1# onnxruntime's Linux wheels report home unless this is set

# The first interpreter that really runs, is new enough and can make an environment: a name on PATH may be an empty shim.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
FOUND_PYTHON = $(or $(PYTHON),$(error no Python >= 3.11 with venv on PATH: install one, or name one with PYTHON=...))

.PHONY: help setup demo test test-slow check lint style types types-of-benches docs fix conformance operators zoo transformers rivals recipes text-engines servers docker-registry arm64-root container-base figures-stale gpu-check runtime c-archives npm web-tools wheel sbom release lock pythons clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@for file in $(wildcard tests/bench/bench_*.py); do \
		name=$$(basename $$file .py | tr _ -); printf '  make %-30s %s\n' $$name "$$(sed -n '2s/"""//gp' $$file)"; done

setup: .venv/ready ## make .venv and install the project into it

# The kernel library is compiled while the larger packages are installed: its compiler is among those of the demo.
# Byte code is written here because neither the children of a compile nor who has PYTHONDONTWRITEBYTECODE set writes any.
.venv/ready: requirements-demo.lock requirements.lock pyproject.toml
	$(FOUND_PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --only-binary=:all: -r requirements-demo.lock
	PYTHONPATH=backends $(BIN)/python -m nndeploy_kernels.build_runtime $(shell uname -m) wasm32 && \
		PYTHONPATH=backends $(BIN)/python -m nndeploy_kernels.build $(shell uname -m) & building=$$!; \
		$(BIN)/pip install --quiet --require-hashes --only-binary=:all: -r requirements.lock; \
		installed=$$?; wait $$building && exit $$installed
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q nndeploy backends
	@touch $@

demo: $(if $(wildcard .venv/ready),,build/demo-env/ready) ## compile the digit reader, run it on PNG images; print what it read, the partition, the speed
	@mkdir -p demo-out
	$(DEMO_BIN)/nndeploy compile examples/digits/digits.onnx --image examples/digits/image.toml -o $(DEMO)
	$(DEMO_BIN)/nndeploy run $(DEMO) --input examples/digits/png
	$(DEMO_BIN)/nndeploy inspect $(DEMO)
	$(DEMO_BIN)/nndeploy bench $(DEMO) --duration 1

build/demo-env/ready: requirements-demo.lock pyproject.toml # what the demo needs: a sixth of .venv
	$(FOUND_PYTHON) -m venv build/demo-env
	build/demo-env/bin/pip install --quiet --require-hashes --only-binary=:all: -r requirements-demo.lock
	build/demo-env/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# One worker more than cores: much of a test is waiting for a process, or for a clock.
test: setup ## run the tests but for those that take long
	$(BIN)/pytest -n 3 --dist loadfile -m "not slow"

test-slow: setup ## run the tests that take long: sanitizers, wheels installed, whole networks; before a release, each night
	$(BIN)/pytest -n 2 --dist loadfile -m slow

check: lint docs test ## all that CI checks

lint: style types types-of-benches ## the rules of style and both checks of types, side by side with --jobs=2

style: setup ## ruff's rules and format, clang-format, and import-linter: who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/lint-imports

types: setup ## mypy --strict over the product
	$(BIN)/mypy

types-of-benches: setup ## mypy over tests/bench and tests/gpu
	$(BIN)/mypy --config-file tests/bench/mypy.ini

docs: build/docs-env/ready ## build the site of docs/ into build/site, in an environment of its own
	NO_MKDOCS_2_WARNING=1 build/docs-env/bin/mkdocs build --quiet --strict -f configs/site/mkdocs.yml

build/docs-env/ready: configs/site/requirements.lock
	$(FOUND_PYTHON) -m venv build/docs-env
	build/docs-env/bin/pip install --quiet --require-hashes --only-binary=:all: -r configs/site/requirements.lock
	@touch $@

fix: setup ## let ruff and clang-format mend what they can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_SOURCES)

conformance: setup ## ONNX's own backend test suite through nndeploy, each compile shown the model alone, then the inputs too
	$(BIN)/python tests/conformance/onnx_suite.py $(ARGS)
	$(BIN)/python tests/conformance/onnx_suite.py --shown $(ARGS)

operators: setup ## run the cases of every operator of ONNX on every engine against the oracle; writes docs/reference/operators.md; ARGS="..."
	$(BIN)/python tests/oracle/run_cases.py $(ARGS)

bench-%: setup ## measure, check the numbers, print a table or write a figure: one of the list below; ARGS="..."
	$(BIN)/python tests/bench/bench_$(subst -,_,$*).py $(ARGS)

fuzz-%: setup ## graphs: random graphs of all operators against the oracle; native-networks: random networks against float64; hostile-numbers: every operator with what nobody expects; containers, bundle-members, c-runtime, openvino-members, native-plans, kernel-plans: mutants; ARGS="..."
	$(BIN)/python $(wildcard tests/fuzz/fuzz_$(subst -,_,$*).py tests/unit/*/fuzz_$(subst -,_,$*).py) $(ARGS)

zoo: build/zoo-env/ready ## export some 140 graphs, as people do, into build/zoo, in an environment of their own; ARGS="NAME ..."
	build/zoo-env/bin/python -W ignore tests/zoo/export.py --out build/zoo $(ARGS)

transformers: build/zoo-env/ready ## export ten transformers of usual sizes, for bench-transformers, into build/transformers
	build/zoo-env/bin/python -W ignore tests/zoo/export.py --usual --out build/transformers $(ARGS)

build/zoo-env/ready: tests/zoo/requirements.txt
	$(FOUND_PYTHON) -m venv build/zoo-env
	build/zoo-env/bin/pip install --quiet -r tests/zoo/requirements.txt
	@touch $@

RIVALS := $(patsubst tests/bench/rival_requirements/%.txt,build/rivals/%/ready,$(wildcard tests/bench/rival_requirements/*))
rivals: $(RIVALS) ## install MNN, ncnn, IREE, LiteRT and ExecuTorch, for bench-speed, each into an environment of its own

# ncnn's converter asks for PyTorch, but its program does without.
build/rivals/%/ready: tests/bench/rival_requirements/%.txt
	$(FOUND_PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet $(if $(filter ncnn,$*),--no-deps) -r $<
	@touch $@

recipes: build/recipes-env/ready ## install silero-vad, ultralytics, rapidocr, sentence-transformers and others, for bench-recipes, into an environment of their own

build/recipes-env/ready: tests/bench/recipes-requirements.txt
	$(FOUND_PYTHON) -m venv build/recipes-env
	build/recipes-env/bin/pip install --quiet -r tests/bench/recipes-requirements.txt
	@touch $@

text-engines: build/text-engines-env/ready ## install ONNX Runtime GenAI and OpenVINO GenAI, and build llama.cpp, for bench-texts, into an environment of their own; needs cmake and a C++ compiler

build/text-engines-env/ready: tests/bench/text-engines-requirements.txt
	$(FOUND_PYTHON) -m venv build/text-engines-env
	CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_NATIVE=ON -DLLAMA_CURL=OFF" \
		build/text-engines-env/bin/pip install --quiet --no-deps -r tests/bench/text-engines-requirements.txt
	@touch $@

servers: build/servers-env/ready ## install Triton and KServe, for bench-serve, into an environment of their own

build/servers-env/ready: tests/bench/servers-requirements.txt
	$(FOUND_PYTHON) -m venv build/servers-env
	build/servers-env/bin/pip install --quiet --no-deps -r tests/bench/servers-requirements.txt
	@touch $@

docker-registry: build/docker-registry/usr/bin/docker-registry ## fetch Debian's docker-registry, which tests of push and pull then use; no root

build/docker-registry/usr/bin/docker-registry:
	mkdir -p $(@D)
	cd build/docker-registry && apt-get download docker-registry && dpkg -x docker-registry_*.deb .

arm64-root: build/arm64-root/ready ## fetch Debian for arm64, qemu and wheels: the box of the other architecture that tests then use; no root

build/arm64-root/ready: tests/fetch_debian_root.sh pyproject.toml .venv/ready
	sh $< arm64 $(@D)
	$(MAKE) wheel
	rm -rf $(@D)/wheels
	$(BIN)/nndeploy wheelhouse --for aarch64 --python 3.11 --glibc 2.36 --with registry --find-links dist -o $(@D)/wheels
	rm $(@D)/wheels/nndeploy_*.whl # tests build those of the checkout
	@touch $@

container-base: build/container-base/ready ## fetch Debian with Python, on which tests then build the container by buildah; no root

build/container-base/ready: tests/fetch_debian_root.sh
	sh $< "$$(dpkg --print-architecture)" $(@D)
	@touch $@

figures-stale: ## the figures of docs/figures that are older than the code they speak of
	@$(FOUND_PYTHON) tests/bench/figures.py

gpu-check: $(if $(wildcard build/gpu-check/bin/python),,setup) ## on a machine with an NVIDIA GPU: conformance, numbers and speed of the GPU tiers; ARGS="..."
	$(firstword $(wildcard build/gpu-check/bin/python) $(BIN)/python) -m pytest tests/gpu tests/conformance/test_backends_gpu.py \
		-k "not without_a_gpu" --require-gpu -n 4 --max-worker-restart=20 -p no:randomly \
		-o faulthandler_timeout=170 -o faulthandler_exit_on_timeout=true -o junit_family=xunit1 -W default $(ARGS)

runtime: setup ## build nndeploy-run and libnndeploy, which run bundles without Python; ARGS="aarch64" for another architecture, "wasm32" for browsers and Node, "x86_64-windows", "aarch64-macos", "x86_64-macos", "--with-libcrypto" for one that checks signatures too
	$(BIN)/python -m nndeploy_kernels.build_runtime $(ARGS)

c-archives: setup ## write what C programs build with into dist: headers, libraries, pkg-config and CMake files, for each architecture
	$(BIN)/python -m nndeploy_kernels.build_archive $(VERSION) dist

npm: setup ## build the npm package @nndeploy/run, which runs bundles in browsers and Node, into dist; needs npm
	$(BIN)/python -m nndeploy_kernels.build_runtime wasm32
	mkdir -p dist
	npm pack --pack-destination dist ./backends/nndeploy_kernels/lib/runtime-wasm32

web-tools: build/web-tools/ready ## install onnxruntime-web, playwright-core and TypeScript, which bench-web and tests of browsers then use; needs npm

build/web-tools/ready: configs/web-tools/package-lock.json
	mkdir -p $(@D)
	cp configs/web-tools/package.json configs/web-tools/package-lock.json $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

wheel: build/wheel-env/ready ## build dist/*.whl, one for each architecture, and the source archive, in an environment of its own
	build/wheel-env/bin/hatchling build -t sdist -d dist
	for arch in x86_64 aarch64; do NNDEPLOY_KERNELS_ARCH=$$arch build/wheel-env/bin/hatchling build -t wheel -d dist || exit 1; done

build/wheel-env/ready: configs/wheel/requirements.lock
	$(FOUND_PYTHON) -m venv build/wheel-env
	build/wheel-env/bin/pip install --quiet --require-hashes --only-binary=:all: -r configs/wheel/requirements.lock
	@touch $@

sbom: setup wheel build/sbom-env/ready ## write what the base install brings as a bill of materials, CycloneDX, into dist
	rm -rf build/base-env && $(FOUND_PYTHON) -m venv --without-pip build/base-env
	$(INSTALL_BASE) --require-hashes --only-binary=:all: -r requirements-base.lock
	$(INSTALL_BASE) --no-index --no-deps --find-links dist nndeploy-toolchain
	sed 's/^dynamic = .*/version = "$(VERSION)"/' pyproject.toml > build/sbom.toml
	build/sbom-env/bin/cyclonedx-py environment --pyproject build/sbom.toml --output-reproducible \
		-o dist/nndeploy-toolchain.cdx.json build/base-env/bin/python
	$(BIN)/python tests/packaging/check_sbom.py dist/nndeploy-toolchain.cdx.json

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' nndeploy/version.py)
DOCS_TAR = tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C build/site

release: ## write into dist the wheels, source archive, libraries for C, bill of materials, site and signed checksums of a clean tree; RELEASE_KEY=FILE
	@test -r "$(RELEASE_KEY)" || { echo "RELEASE_KEY names no private key: nndeploy key new" >&2; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "the tree is not clean: git status" >&2; exit 1; }
	@grep -q '^## \[$(VERSION)\] - ' CHANGELOG.md || { echo "CHANGELOG.md has no [$(VERSION)]" >&2; exit 1; }
	rm -rf dist
	$(MAKE) --no-print-directory sbom docs c-archives
	$(DOCS_TAR) -c . | gzip -n > dist/nndeploy-toolchain-$(VERSION)-docs.tar.gz
	cd dist && sha256sum * > SHA256SUMS
	openssl pkeyutl -sign -rawin -inkey "$(RELEASE_KEY)" -in dist/SHA256SUMS -out dist/SHA256SUMS.sig

INSTALL_BASE = build/sbom-env/bin/pip --python build/base-env/bin/python install --quiet

build/sbom-env/ready: configs/sbom/requirements.lock
	$(FOUND_PYTHON) -m venv build/sbom-env
	build/sbom-env/bin/pip install --quiet --require-hashes --only-binary=:all: -r configs/sbom/requirements.lock
	@touch $@

lock: ## write the requirements*.lock files, the site's, the bill's and the wheels' for pyproject.toml; keeps its versions (delete the file first to take the newest)
	$(FOUND_PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	echo hatchling | build/lock/bin/uv pip compile pyproject.toml - --extra compile --extra cpu --extra openvino --extra tensorrt-rtx --extra cudnn --extra triton --extra vision --extra video --extra loadgen --extra pacing --extra pkcs11 --extra registry --extra farm --extra serve --extra text --extra dev --group kernels --group clients \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o requirements.lock
	echo hatchling | build/lock/bin/uv pip compile pyproject.toml - --extra compile --extra cpu --extra vision --group kernels -c requirements.lock \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o requirements-demo.lock
	echo hatchling | build/lock/bin/uv pip compile pyproject.toml - --extra compile --extra cpu --extra vision --extra dev --group kernels -c requirements.lock \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o requirements-pythons.lock
	build/lock/bin/uv pip compile pyproject.toml -c requirements.lock \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o requirements-base.lock
	for group in site sbom; do build/lock/bin/uv pip compile --group $$group \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o configs/$$group/requirements.lock || exit 1; done
	build/lock/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | \
		build/lock/bin/uv pip compile - -c requirements.lock \
		--python-version 3.11 --python-platform linux --generate-hashes --custom-compile-command 'make lock' --quiet -o configs/wheel/requirements.lock

pythons: setup ## the tests on the other versions of Python that are here, each in an environment of its own; ARGS="--quick"
	$(BIN)/python tests/packaging/check_pythons.py $(ARGS)

clean: ## remove what make made, except .venv
	rm -rf build dist demo-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
