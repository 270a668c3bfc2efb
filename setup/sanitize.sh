#!/usr/bin/env bash
# Build the engines with AddressSanitizer and UBSan into build/sanitize, and run in them what tests/sanitized.py lists:
# random scenarios and conformance cases must raise no alarm and give the bytes of the release build. After install.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")
source setup/debian.sh
source setup/compiler.sh

ensure_compiler
ensure_python_headers
runtime=$("$CXX" -print-file-name=libasan.so)
if [ ! -e "$runtime" ] || ! CXXFLAGS="${CXXFLAGS:-} -fsanitize=address,undefined" compiles "$CXX"; then
    step "not sanitized: $CXX has no AddressSanitizer; next: install g++"
    exit 0
fi

folder=build/sanitize
step "engines with AddressSanitizer and UBSan"
"$VENV/bin/cmake" -S . -B "$folder" -G Ninja -DCMAKE_MAKE_PROGRAM="$VENV/bin/ninja" -DCMAKE_BUILD_TYPE=Debug \
    -DFABRICTUNE_SANITIZE=ON -DPython_EXECUTABLE="$VENV/bin/python" \
    -Dnanobind_DIR="$("$VENV/bin/python" -m nanobind --cmake_dir)" >/dev/null
"$VENV/bin/cmake" --build "$folder" >/dev/null

step "the same runs in the release build, then sanitized"
"$VENV/bin/python" -m tests.sanitized >"$folder/release.txt"
# Python allocates once and for all, so leaks are not looked for.
LD_PRELOAD="$runtime $("$CXX" -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
    "$VENV/bin/python" -m tests.sanitized "$folder" >"$folder/sanitized.txt"
diff "$folder/release.txt" "$folder/sanitized.txt"
echo "sanitized: $(wc -l <"$folder/release.txt") runs, no alarm, and the bytes of the release build"
