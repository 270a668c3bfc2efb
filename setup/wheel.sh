#!/usr/bin/env bash
# Build a wheel with the Python of $VENV into dist/, or the folder given; it installs where there is no compiler.
# Arguments: folder, source (this checkout, or a source distribution), settings of the build. After install.sh; for
# wheels.sh, which makes what is released, in environments of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")
source setup/debian.sh
source setup/compiler.sh

folder=${1:-dist} source=${2:-.}
ensure_compiler
ensure_python_headers
PATH="$VENV/bin:$PATH" "$VENV/bin/python" -m pip wheel -qq --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$folder" "${@:3}" "$source"
ls "$folder"/*.whl
