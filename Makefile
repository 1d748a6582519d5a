# Thin wrappers around apt, CMake and ctest. `make demo` and `make test` are all a newcomer needs.

PRESET ?= dev
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)

# The compiler and its libraries, what builds it, and what its tests use.
PACKAGES := clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools libzstd-dev zlib1g-dev \
            cmake ninja-build ccache git python3 libpython3-dev libgtest-dev libstdc++-12-dev python3-numpy python3-pytest
# What a build for aarch64 links, and what runs it here.
AARCH64_PACKAGES := libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools libstdc++-12-dev libzstd-dev zlib1g-dev libxml2-dev \
                    libpython3-dev
SANITIZER_PACKAGES := libclang-rt-22-dev
# What looks at pages: Chromium with it.
BROWSER_PACKAGES := chromium-driver
FORMAT_PACKAGES := clang-format-22 clang-tidy-22

# What PyTorch's tests need; the wheel without CUDA is on PyTorch's own index, or on a mirror.
TORCH := torch==2.13.0+cpu numpy pytest
# Whose calls attn serves: python/attn/integrations.
INTEGRATED := transformers==5.23.0 attn-gym==0.0.17 jax==0.10.2 flatbuffers==25.12.19
# Whose tests run by name alone: with test-neighbours.
NEIGHBOURS := diffusers==0.42.1 flax==0.12.8 keras==3.15.1 kernels==0.17.2
TENSORFLOW := tensorflow-cpu==2.21.0 numpy pytest
# What builds the site.
SITE_TOOLS := mkdocs==1.6.1 mkdocs-material==9.8.2 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11
# What checks the types that users see, what completes names as editors do, and what makes an sdist.
CHECKERS := mypy==2.4.1 jedi==0.20.1 build==1.6.1
# What pyproject.toml promises to serve: the oldest versions, those of the machine of the GPU measurements, and the newest.
VERSIONS ?= oldest measured newest
oldest := torch==2.9.0 transformers==5.17.0 jax==0.10.0
measured := torch==2.11.0 transformers==5.17.0 jax==0.10.2
newest := torch transformers jax
# Where they are installed, 5 GB each where the index of PyTorch's wheels without CUDA is out of reach.
ENVIRONMENTS ?= build/versions
# Some minutes of compiled graphs, integrations and gradients; and a minute of them, for each change.
VERSION_TESTS := $(patsubst %,test/Python/test_%.py,torch operator graph_text recorded gradient flex flex_compiled sdpa package transformers continuous training distributed jax jax_serving)
VERSION_SAMPLE := $(patsubst %,test/Python/test_%.py,graph_text recorded) \
                  $(addprefix test/Python/test_operator.py::test_,opcheck dynamic_shapes vmap export) \
                  $(addprefix test/Python/test_gradient.py::test_,checkpoints captured_tensors_under_transforms) \
                  $(addprefix test/Python/test_transformers.py::test_,static_caches steps_that_generate_compiles masks_that_were_made_before)
# Which assembler judges the kernels, and what takes its code apart: test/Execution/kernel_costs.py pins both.
ASSEMBLER := nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvdisasm==13.2.51

# What `make check-asan` and `make test-tsan` run: the first is a sample that builds in minutes, most of them for the dialects.
ASAN_DIALECTS := DialectTest LayoutTest MaskTilesTest ScheduleRuleTest TileCasesTest
ASAN_SAMPLE = ArrayTest CacheTest CompareTest KernelPlanTest LaunchTest NpyTest RuntimeTest $(ASAN_DIALECTS)
# Minutes of the same code on other numbers.
ASAN_WITHOUT := MaskTiles.Random*:MaskTiles.Chunks:MaskTiles.Documents:MaskTiles.Window*:ScheduleRule.EveryChoiceForCUDA*
TSAN_TESTS := CacheTest RuntimeTest ThreadPoolTest
# What `make check-tidy` compares with.
SINCE ?= HEAD~1

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test test-asan test-tsan check-asan check-addresses check-tsan torch test-torch check-torch test-training test-serving test-machines test-neighbours test-browser test-distributed assembler format check-format tidy check-tidy check-types docs site hour mutation fuzz \
        bench install wheel wheel-tools test-wheel wheel-aarch64 hub release gpu-bundle clean

help: ## List the commands
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# Installs what is missing and says so; does nothing on a machine that has everything.
define install
	@missing=""; for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
	  command -v apt-get >/dev/null || { echo "make setup: expected a Debian 12 machine with apt-get; install by hand:$$missing" >&2; exit 1; }; \
	  if [ "$$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi; \
	  echo "setup: installing$$missing (about 210 MB to download, 1.7 GB on disk)"; \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null || \
	  { echo "make setup: apt-get failed; the packages are in Debian 12 (bookworm, bookworm-security)" >&2; exit 1; }; \
	fi
endef

setup: ## Install the Debian packages that are missing
	$(call install,$(PACKAGES))

configure: setup
	@[ -f $(BUILD)/build.ninja ] || cmake --preset $(PRESET) >/dev/null

build: configure ## Build the tools (PRESET=dev|release|asan|tsan)
	@cmake --build --preset $(PRESET) --parallel $(JOBS)

demo: configure ## Install, build, and run attention on this machine
	@docs/progress "building the tools" cmake --build --preset $(PRESET) --parallel $(JOBS) --target attn-opt attn-translate attn-run
	@docs/demo $(BUILD)/bin

test: build ## Run every test
	@ctest --preset $(PRESET) --parallel $(JOBS) --no-tests=error

test-asan: ## Run every test under AddressSanitizer and UBSan, leaks included
	$(call install,$(SANITIZER_PACKAGES))
	@$(MAKE) --no-print-directory test PRESET=asan

check-asan: # A sample: the dialects, the analysis of masks, the rule of schedules, and code without IR
	$(call install,$(SANITIZER_PACKAGES))
	@$(MAKE) --no-print-directory configure PRESET=asan
	@cmake --build --preset asan --parallel $(JOBS) --target $(ASAN_SAMPLE)
	@GTEST_FILTER='-$(ASAN_WITHOUT)' \
	  ctest --preset asan --parallel $(JOBS) --no-tests=error -R '^($(subst $(eval) ,|,$(strip $(ASAN_SAMPLE))))$$'

check-addresses: build # Less than a minute of gradients on a CPU, whose kernels have AddressSanitizer's checks: others each time
	$(call install,$(SANITIZER_PACKAGES))
	@test/Execution/run-addresses $(BUILD)/bin/ExecutionTest

test-tsan: ## Run the C interface from many threads, and what threads share, under ThreadSanitizer
	@$(MAKE) --no-print-directory check-tsan TSAN_TESTS="threads $(TSAN_TESTS)"

check-tsan: # Without the compiler, which takes minutes to build
	$(call install,$(SANITIZER_PACKAGES))
	@$(MAKE) --no-print-directory configure PRESET=tsan
	@cmake --build --preset tsan --parallel $(JOBS) --target $(TSAN_TESTS)
	@ctest --preset tsan --no-tests=error -R '^($(subst $(eval) ,|,$(strip $(TSAN_TESTS))))$$'

torch: ## Install PyTorch for the CPU, Transformers, JAX and mypy into .venv, so that their tests run
	$(call install,python3-venv)
	@.venv/bin/python -I -c "import torch, numpy, pytest, transformers, attn_gym, jax, mypy, jedi, build" 2>/dev/null || { \
	  echo "torch: installing PyTorch 2.13, Transformers and JAX into .venv (380 MB to download, 1.6 GB on disk)"; \
	  python3 -m venv .venv && \
	  { .venv/bin/pip install -q $(TORCH) 2>/dev/null || \
	    .venv/bin/pip install -q --extra-index-url https://download.pytorch.org/whl/cpu $(TORCH); } && \
	  .venv/bin/pip install -q $(INTEGRATED) $(CHECKERS); }

test-torch: build ## Run the Python tests with other libraries: VERSIONS="oldest measured newest"
	@for versions in $(VERSIONS); do $(MAKE) --no-print-directory environment-$$versions test-with-$$versions || exit 1; done

environment-%:
	$(call install,python3-venv)
	@[ -n "$($*)" ] || { echo "make test-torch: expected VERSIONS of oldest, measured and newest, got $*" >&2; exit 1; }
	@[ -d $(ENVIRONMENTS)/$* ] || { echo "test-torch: installing $($*) into $(ENVIRONMENTS)/$*"; python3 -m venv $(ENVIRONMENTS)/$*; }
	@$(ENVIRONMENTS)/$*/bin/python -m pip install -q --upgrade --retries 0 --extra-index-url https://download.pytorch.org/whl/cpu \
	  $($*) $(filter attn-gym%,$(INTEGRATED)) numpy pytest 2>$(ENVIRONMENTS)/$*/install.log || { cat $(ENVIRONMENTS)/$*/install.log >&2; exit 1; }

test-with-%:
	@ATTN_LIBRARY=$(BUILD)/lib/libattn.so PYTHONPATH=python \
	  $(ENVIRONMENTS)/$*/bin/python -B -m pytest -q -p no:cacheprovider $(or $(TESTS),$(VERSION_TESTS))

check-torch: # A minute with the versions that VERSIONS names
	@$(MAKE) --no-print-directory test-with-$(VERSIONS) TESTS="$(VERSION_SAMPLE)"

test-training: build ## Train Hugging Face's families, compiled by Inductor and in two processes too, and print how far gradients are off
	@ATTN_TRAINING=all ATTN_LIBRARY=$(BUILD)/lib/libattn.so PYTHONPATH=python \
	  .venv/bin/python -B -W ignore -m pytest -q -s -p no:cacheprovider test/Python/test_training.py test/Python/test_distributed.py

test-serving: build ## Compare paged keys with dense ones in the whole grid of page sizes, memory orders, masks and tiles
	@for device in cpu sim; do $(BUILD)/bin/ExecutionTest --device=$$device --gtest_also_run_disabled_tests \
	  --gtest_filter='PagedTest.*' || exit 1; done

# The assembler of `make assembler`, or of the path.
PTXAS = $(firstword $(wildcard .venv/lib/python3*/site-packages/nvidia/cu13/bin/ptxas) ptxas)
MACHINES ?= sm_80 sm_86 sm_89 sm_90a sm_100a sm_103a sm_120a
test-machines: build ## For each of MACHINES, simulate every test, execute the text of every case, and assemble every kernel (hours)
	@$(BUILD)/bin/MutationTest
	@for machine in $(MACHINES); do \
	  echo "test-machines: $$machine"; rm -rf $(BUILD)/machines/$$machine; mkdir -p $(BUILD)/machines/$$machine; \
	  $(BUILD)/bin/ExecutionTest --device=sim --target=$$machine --gtest_brief=1 && \
	  python3 -B test/Execution/run_ptx.py $(BUILD)/bin --target $$machine && \
	  $(BUILD)/bin/ExecutionTest --device=cuda --target=$$machine --random=0 --gtest_brief=1 --emit=$(BUILD)/machines/$$machine && \
	  python3 -B test/Execution/assemble_emitted.py $(BUILD)/machines/$$machine --target $$machine --ptxas $(PTXAS) \
	    --most $$([ $$machine = sm_90a ] && echo 0 || echo 64) || exit 1; done

test-neighbours: build ## Compare attn with diffusers, Flax, Keras and TensorFlow, in environments of their own (1.6 GB to install)
	$(call install,python3-venv)
	@for name in diffusers tensorflow; do \
	  [ -d $(ENVIRONMENTS)/$$name ] || { echo "test-neighbours: installing $$name into $(ENVIRONMENTS)/$$name"; python3 -m venv $(ENVIRONMENTS)/$$name; }; done
	@$(ENVIRONMENTS)/diffusers/bin/python -m pip install -q --extra-index-url https://download.pytorch.org/whl/cpu $(TORCH) $(INTEGRATED) $(NEIGHBOURS)
	@$(ENVIRONMENTS)/tensorflow/bin/python -m pip install -q $(TENSORFLOW)
	@for name in diffusers tensorflow; do ATTN_NEIGHBOURS=all ATTN_LIBRARY=$(BUILD)/lib/libattn.so PYTHONPATH=python \
	  $(ENVIRONMENTS)/$$name/bin/python -B -m pytest -q -p no:cacheprovider \
	  $(patsubst %,test/Python/test_%.py,neighbours diffusers flax keras tensorflow xformers transformer_engine hub) || exit 1; done

test-browser: build site ## Look at the page of --html, and at the site, in Chromium, wide and on a phone (110 MB to install)
	$(call install,$(BROWSER_PACKAGES))
	@$$(sed -n 's/^LIT:FILEPATH=//p' $(BUILD)/CMakeCache.txt) -s --filter html-browser $(BUILD)/test/Tools
	@build/site-tools/bin/python -c "import pytest" 2>/dev/null || build/site-tools/bin/pip install -q pytest
	@build/site-tools/bin/python -B -m pytest -q -p no:cacheprovider --noconftest test/Python/test_site.py -k browser

test-distributed: build ## Compare attention of 2, 3 and 4 processes with one in the whole grid of masks, methods and shardings
	@ATTN_DISTRIBUTED=all ATTN_LIBRARY=$(BUILD)/lib/libattn.so PYTHONPATH=python \
	  .venv/bin/python -B -W ignore -m pytest -q -s -p no:cacheprovider \
	  $(patsubst %,test/Python/test_context_%.py,parallel compiled dropin dtensor shared rows nodes)

assembler: ## Install the pinned ptxas and nvdisasm into .venv, so that machine code is judged too
	$(call install,python3-venv)
	@ls .venv/lib/python3*/site-packages/nvidia/cu13/bin/nvdisasm >/dev/null 2>&1 || { \
	  echo "assembler: installing ptxas and nvdisasm into .venv (43 MB to download)"; \
	  [ -d .venv ] || python3 -m venv .venv; \
	  .venv/bin/pip install -q --no-deps $(ASSEMBLER); }
	@[ ! -f $(BUILD)/build.ninja ] || cmake --preset $(PRESET) -UPTXAS -UNVDISASM >/dev/null

format: ## Format the sources
	$(call install,$(FORMAT_PACKAGES))
	@git ls-files '*.cpp' '*.h' '*.c' | xargs clang-format-22 -i

check-format:
	$(call install,$(FORMAT_PACKAGES))
	@git ls-files '*.cpp' '*.h' '*.c' | xargs clang-format-22 --dry-run -Werror

tidy: build ## Run clang-tidy over the sources
	$(call install,$(FORMAT_PACKAGES))
	@git ls-files 'lib/*.cpp' 'dialects/*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy-22 -p $(BUILD) --quiet

check-tidy: build # The sources that differ from SINCE, at most 6 of them
	$(call install,$(FORMAT_PACKAGES))
	@git diff --name-only --diff-filter=d $(SINCE) -- 'lib/*.cpp' 'dialects/*.cpp' | head -6 | \
	  xargs -r -P $(JOBS) -n 2 clang-tidy-22 -p $(BUILD) --quiet --warnings-as-errors='*'

check-types: ## Check the types of the Python package with mypy: 8 s, and 1 s once it has a cache
	@.venv/bin/python -m mypy

docs: configure ## Generate the op and pass documentation into build/dev/docs
	@cmake --build --preset $(PRESET) --target attn-doc
	@ls $(BUILD)/docs/*.md

site: ## Build the site of the documents into build/site, strictly (25 MB to install, then 10 s)
	$(call install,python3-venv)
	@[ -d build/site-tools ] || python3 -m venv build/site-tools
	@build/site-tools/bin/python -c "import material, mkdocstrings_handlers.python" 2>/dev/null || build/site-tools/bin/pip install -q $(SITE_TOOLS)
	@build/site-tools/bin/python docs/site

hour: build # The patches and commands of docs/NewOp.md, in this checkout; takes them back
	@docs/follow $(BUILD)/bin docs/NewOp.md

mutation: build ## Change every barrier, wait and count of some kernels; show which mutants the simulator accepts
	@$(BUILD)/bin/MutationTest

fuzz: setup ## Look for what breaks it: each of FUZZERS (a pattern) for MINUTES, from a fresh seed
	$(call install,$(SANITIZER_PACKAGES))
	@cmake --preset $(PRESET) -UATTN_HAS_LIBFUZZER >/dev/null
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target attn-fuzzers
	@ATTN_FUZZ_MINUTES=$(or $(MINUTES),1) ctest --preset $(PRESET) -C Fuzz -L fuzz -R "$(or $(FUZZERS),.)" --parallel $(JOBS) --verbose --no-tests=error

bench: ## Compare with PyTorch on the CPU (installs PyTorch into .venv)
	@$(MAKE) --no-print-directory build PRESET=release
	@bench/run

install: ## Install libattn.so, which needs the C library alone, and its headers for C and C++ into PREFIX
	@[ -n "$(PREFIX)" ] || { echo "make install: expected PREFIX=WHERE, got none" >&2; exit 1; }
	@$(MAKE) --no-print-directory configure PRESET=release
	@cmake --build --preset release --parallel $(JOBS) --target attn
	@cmake --install build/release --component c --prefix $(PREFIX)

# What packs wheels, and marks and ships what is in them.
define pack-wheel
	@rm -f dist/attn-*_$(1).whl
	@build/wheel-tools/bin/pip wheel -q --no-deps -w dist $(2) .
	@build/wheel-tools/bin/python -m wheel tags --remove --platform-tag manylinux_2_34_$(1) dist/attn-*-linux_*.whl >/dev/null
endef

wheel-tools:
	$(call install,python3-venv)
	@[ -d build/wheel-tools ] || python3 -m venv build/wheel-tools
	@build/wheel-tools/bin/python -c "import auditwheel, wheel" 2>/dev/null || build/wheel-tools/bin/pip install -q wheel auditwheel

wheel: setup wheel-tools ## Build the Python package for others, Linux with glibc 2.34 and later, into dist/, and check it
	$(call pack-wheel,x86_64,)
	@$(MAKE) --no-print-directory assembler
	@PATH="$(dir $(abspath $(PTXAS))):$$PATH" build/wheel-tools/bin/python docs/ship-kernels dist/attn-*_x86_64.whl
	@build/wheel-tools/bin/python test/Wheel/check dist/attn-*_x86_64.whl

wheel-aarch64: setup wheel-tools ## The same for aarch64, built on x86_64 with Debian's libraries (260 MB to download) and called under qemu
	$(call install,qemu-user-static)
	@docs/debian-root build/aarch64/root arm64 bookworm $(AARCH64_PACKAGES)
	$(call pack-wheel,aarch64,-C build-dir=build/aarch64/wheel -C cmake.define.CMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/AArch64.cmake \
	  -C cmake.define.Python3_INCLUDE_DIR=$(CURDIR)/build/aarch64/root/usr/include/python3.11)
	@build/wheel-tools/bin/python test/Wheel/check dist/attn-*_aarch64.whl
	@test/Wheel/roots dist/attn-*_aarch64.whl

test-wheel: ## Install the wheel of dist/ on fresh machines of Debian 12, 13 and sid (Python 3.11, 3.13, 3.14; 100 MB to download)
	@test/Wheel/roots dist/attn-*-manylinux_2_34_x86_64.whl

hub: ## Pack the wheels of dist/ as a repository of Hugging Face's kernel hub into dist/hub
	@docs/pack-hub dist/attn-*-manylinux_2_34_*.whl

release: ## Check that this commit can be released, and put sdist, wheel, notes and checksums into dist/VERSION
	@docs/release --check
	@$(MAKE) --no-print-directory wheel
	@build/wheel-tools/bin/python -I -c "import build, scikit_build_core" 2>/dev/null || build/wheel-tools/bin/pip install -q build scikit-build-core
	@build/wheel-tools/bin/python docs/release

gpu-bundle: ## Pack tools, tests, benches and the Python package for a machine with an NVIDIA driver into dist/gpu-bundle
	@$(MAKE) --no-print-directory configure PRESET=release
	@cmake --build --preset release --parallel $(JOBS) --target attn-tools attn attn-direct attn-torch
	@docs/pack-gpu-bundle build/release

clean: ## Remove the build folders
	@rm -rf build
