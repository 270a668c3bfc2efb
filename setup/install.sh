#!/usr/bin/env bash
# Install fabrictune into $VENV (default .venv), compiled and editable: `install.sh`, or `install.sh tests` to add
# what the tests use. Needs a network and nothing else; safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")
source setup/debian.sh
source setup/python.sh
source setup/compiler.sh

pip_install() { "$VENV/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@"; }

if [ ! -x "$VENV/bin/pip" ]; then
    python=$(ensure_python)
    make_environment "$python"
fi
pip_install pip  # one that knows dependency groups

ensure_compiler
ensure_python_headers
step "build tools"
pip_install scikit-build-core nanobind cmake ninja

if [ "${1:-}" = tests ]; then
    step "packages with PyTorch and the development tools, and the engine; a minute or two"
    pip_install --group dev --no-build-isolation -e '.[train,redis,s3,kubernetes,probe,plot,sweep,pandas,fleet]'
    ensure_test_packages
    step "image of a virtual machine with RDMA devices; half a minute, once"
    "$VENV/bin/python" -m fabrictune.rdma_bench.soft_roce >/dev/null || step "no image, so tests that use it are skipped"
    touch "$VENV/installed-for-tests"
else
    step "packages and the engine; about a minute"
    pip_install --no-build-isolation -e .
fi
touch "$VENV/installed"
