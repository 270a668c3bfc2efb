#!/usr/bin/env bash
# Build the engines with AddressSanitizer and UBSan into build/sanitize, and with ThreadSanitizer into build/tsan, and run
# in them what tests/sanitized.py lists: random scenarios and conformance cases, and under ThreadSanitizer runs over
# several threads, must raise no alarm and give the bytes of the release build. After install.sh.
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

# build FOLDER OPTION
build() {
    "$VENV/bin/cmake" -S . -B "$1" -G Ninja -DCMAKE_MAKE_PROGRAM="$VENV/bin/ninja" -DCMAKE_BUILD_TYPE=Debug \
        -D"$2"=ON -DPython_EXECUTABLE="$VENV/bin/python" \
        -Dnanobind_DIR="$("$VENV/bin/python" -m nanobind --cmake_dir)" >/dev/null
    "$VENV/bin/cmake" --build "$1" >/dev/null
}

folder=build/sanitize
step "engines with AddressSanitizer and UBSan"
build "$folder" FABRICTUNE_SANITIZE

step "the same runs in the release build, then sanitized"
"$VENV/bin/python" -m tests.sanitized >"$folder/release.txt"
# Python allocates once and for all, so leaks are not looked for.
LD_PRELOAD="$runtime $("$CXX" -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
    "$VENV/bin/python" -m tests.sanitized "$folder" >"$folder/sanitized.txt"
diff "$folder/release.txt" "$folder/sanitized.txt"
echo "sanitized: $(wc -l <"$folder/release.txt") runs, no alarm, and the bytes of the release build"

runtime=$("$CXX" -print-file-name=libtsan.so)
if [ ! -e "$runtime" ]; then
    step "threads are not sanitized: $CXX has no ThreadSanitizer; next: install g++"
    exit 0
fi
step "runs over several threads, with ThreadSanitizer"
build build/tsan FABRICTUNE_SANITIZE_THREADS
LD_PRELOAD="$runtime" TSAN_OPTIONS="halt_on_error=1" \
    "$VENV/bin/python" -m tests.sanitized --over-threads build/tsan >"$folder/threads.txt"
diff <(grep "^over threads" "$folder/release.txt") "$folder/threads.txt"
echo "sanitized: $(wc -l <"$folder/threads.txt") runs over threads, no race, and the bytes of the release build"
