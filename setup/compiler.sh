# A C++20 compiler and Python's headers for the engine. Sourced by install.sh, wheel.sh and wheels.sh.
# Where the machine has none and gives no leave to install one, the compiler comes as a Python wheel.

compiles() {
    # shellcheck disable=SC2086  # CXXFLAGS holds several words
    command -v "$1" >/dev/null && "$1" ${CXXFLAGS:-} -std=c++20 -x c++ - -o /dev/null 2>/dev/null <<<'#include <bit>
        int main() { return std::has_single_bit(2u) ? 0 : 1; }'
}

ensure_compiler() {
    local candidate
    for candidate in ${CXX:-c++ g++ clang++}; do
        if compiles "$candidate"; then
            export CXX=$candidate
            return
        fi
    done
    if is_root_on_debian && install_packages g++ && compiles g++; then
        export CXX=g++
    else
        use_compiler_from_wheel
    fi
}

use_compiler_from_wheel() {
    local tool
    local folder=$VENV/toolchain
    step "no C++20 compiler found: installing one as a Python wheel (ziglang)"
    "$VENV/bin/pip" install -qq -c constraints.txt ziglang
    mkdir -p "$folder"
    for tool in cc c++ ar ranlib; do
        printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="%s/cache"\nexec "%s/bin/python" -m ziglang %s "$@"\n' \
            "$folder" "$VENV" "$tool" >"$folder/$tool"
        chmod +x "$folder/$tool"
    done
    export CC=$folder/cc CXX=$folder/c++ PATH=$folder:$PATH
    export CXXFLAGS="${CXXFLAGS:-} -O3 -fPIC"  # it builds its C++ library once for each mode: let there be one
    compiles "$CXX" || stop "the compiler from the wheel does not work here" "install g++ 10 or newer, or clang++ 12"
}

ensure_python_headers() {
    local include package
    include=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -e "$include/Python.h" ] && return
    package=lib$(basename "$include")-dev
    if is_root_on_debian && install_packages "$package"; then
        return
    elif [ -e "$VENV/debian$include/Python.h" ] || unpack_package "$package"; then
        export CMAKE_ARGS="${CMAKE_ARGS:-} -DPython_INCLUDE_DIR=$VENV/debian$include"
        export CXXFLAGS="${CXXFLAGS:-} -I$VENV/debian/usr/include"
    else
        stop "Python's headers ($include/Python.h) are missing" "apt-get install $package"
    fi
}
