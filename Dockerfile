# Two targets, the same steps. The first runs the tests and then trains the example, the second asks a GPU all that
# benchmarks.gpu asks, in eight minutes, and prints the summary:
#   docker build --target cpu  -t lucid:cpu  . && docker run --rm lucid:cpu
#   docker build --target cuda -t lucid:cuda . && docker run --rm --gpus all lucid:cuda
# They install packages of 1.1 GB, and of 4.6 GB, nearly all of it CUDA's libraries and cuDNN; the second compiles the
# kernels for three architectures, 24 MB, in some 14 minutes of one core.

# The extra brings CUDA's libraries and cuDNN as wheels, so the small base image is enough.
FROM nvidia/cuda:12.9.1-base-ubuntu24.04 AS cuda
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3.12 python3.12-venv g++ \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home lucid
USER 10001
WORKDIR /home/lucid/app
COPY --chown=10001 . .
# Kernels are compiled here, where no GPU is needed, and not again by each container; leave out what you have not.
RUN python3.12 -m venv .venv && .venv/bin/pip install --no-cache-dir --editable '.[cuda12,test,examples]' \
    && .venv/bin/python -m lucid.cuda.build --arch sm_80,sm_90,sm_100
ENV PATH=/home/lucid/app/.venv/bin:$PATH LUCID_REQUIRE_GPU=1
CMD ["python", "-m", "benchmarks.gpu", "--out", "out"]

FROM python:3.11.13-slim-bookworm AS cpu
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home lucid
USER 10001
WORKDIR /home/lucid/app
COPY --chown=10001 . .
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir --editable '.[test,examples,simulator]'
ENV PATH=/home/lucid/app/.venv/bin:$PATH
CMD ["sh", "-c", "pytest --numprocesses=auto --ignore=tests/parity && python examples/train_digits.py --device cpu"]
