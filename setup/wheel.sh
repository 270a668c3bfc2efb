#!/usr/bin/env bash
# Build a wheel into dist/, or the folder given; it installs where there is no compiler. After install.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")
source setup/debian.sh
source setup/compiler.sh

ensure_compiler
ensure_python_headers
"$VENV/bin/python" -m pip wheel -qq --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "${1:-dist}" .
ls "${1:-dist}"/*.whl
