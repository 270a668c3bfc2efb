#!/usr/bin/env bash
# Write the type stubs of the compiled modules, as they are installed, into the folder given (default: this checkout).
# After install.sh tests.
set -euo pipefail
target=$(realpath "${1:-$(dirname "$0")/..}")
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")

# Sizes are those of one machine's compiler, and shapes are checked where arrays come in: both say nothing of types.
plain_types() { sed -E 's/^([A-Z_]+: (int|float)) = .*/\1/; s/Annotated\[(NDArray\[[a-z0-9.]+\]), dict\([^)]*\([^)]*\)[^)]*\)\]/\1/g'; }

for stub in netsim/_engine.pyi topology/_fairness.pyi; do
    module=fabrictune.$(dirname "$stub").$(basename "$stub" .pyi)
    mkdir -p "$target/$(dirname "$stub")"
    written=$(mktemp)
    "$VENV/bin/python" -m nanobind.stubgen -q -m "$module" -o "$written"
    plain_types <"$written" |
        "$VENV/bin/ruff" check -q --fix --exit-zero --select F401,I --stdin-filename "$stub" - |
        "$VENV/bin/ruff" format --stdin-filename "$stub" - >"$target/$stub"
    rm "$written"
done
