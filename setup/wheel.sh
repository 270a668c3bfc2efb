#!/usr/bin/env bash
# Build a wheel into dist/ from the installed environment; it installs where there is no compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")
source setup/debian.sh
source setup/compiler.sh

ensure_compiler
ensure_python_headers
"$VENV/bin/python" -m pip wheel -qq --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
ls dist/*.whl
