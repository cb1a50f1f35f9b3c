# What is run while working on lucid, and by .ci/run: `make` lists it. PYTHON is that of an environment with lucid
# installed as CONTRIBUTING.md says; T narrows a target to some tests, as in `make test T=tests/nn`.
PYTHON ?= .venv/bin/python
# two processes on two cores: a second thread of a library would wait for the other process's
PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q --numprocesses 2

# simulated devices, kernels under the sanitizers, the order of threads permuted; nothing is left out for want of a GPU
SIMULATED = LUCID_CUDA_SIMULATOR=2 LUCID_SIMULATOR_SANITIZE=1 LUCID_SIMULATOR_SEED=1 LUCID_REQUIRE_GPU=1

.PHONY: help check test laws parity kernels device nvrtc rehearse bench docs

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## style, format and types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -c 'import clang_format; clang_format.clang_format()' --dry-run --Werror $$(git ls-files '*.cu' '*.cuh' '*.cpp' '*.h')
	$(PYTHON) -m pyright --pythonpath $(PYTHON)

test: ## the tests on the CPU, and the examples in docstrings
	$(PYTEST) --doctest-modules $(or $(T),--ignore tests/parity --ignore tests/kernels --ignore tests/cuda)

laws: ## what holds for all files, names and lists: half a minute
	$(PYTEST) $(or $(T),tests/laws tests/settings/test_documents.py)

parity: ## comparisons with PyTorch, on the CPU
	$(PYTEST) $(or $(T),tests/parity $(addprefix tests/,benchmarks/test_host.py benchmarks/test_kernels.py amp/test_grad_scaler.py))

kernels: ## the tests of kernels and of lucid.cuda, on simulated devices
	$(SIMULATED) $(PYTEST) $(or $(T),tests/kernels tests/cuda --ignore tests/kernels/test_nvrtc.py)

device: ## the other tests that use one, their tensors on a simulated device
	$(SIMULATED) LUCID_TEST_DEVICE=cuda $(PYTEST) $(or $(T),tests --ignore tests/kernels --ignore tests/cuda)

nvrtc: ## each kernel in each dtype by NVIDIA's compiler
	LUCID_REQUIRE_NVRTC=1 $(PYTEST) tests/kernels/test_nvrtc.py $(T)

rehearse: ## what is run on a GPU, small on a simulated device, and what it must leave; T: a folder
	$(PYTHON) -m benchmarks.gpu --rehearse --out $(or $(T),$$(mktemp -d))

docs: ## the site, into docs/_build; every warning is an error, and so is a link that leads nowhere
	$(PYTHON) -m sphinx -q -W --keep-going -b html docs docs/_build
	$(PYTHON) docs/links.py docs/_build

bench: ## speed and memory, as ratios to PyTorch; T=gelu: rows of that name
	$(PYTHON) -m benchmarks $(if $(T),--rows $(T))
