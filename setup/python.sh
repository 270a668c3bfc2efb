# A Python that can run fabrictune, and a virtual environment with pip made from it. Sourced by install.sh.

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {  # prints the first that runs; the distribution's own comes first
    local candidate
    for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}; do
        is_new_enough "$candidate" && command -v "$candidate" && return
    done
    return 1
}

ensure_python() {
    find_python && return
    if is_root_on_debian; then
        install_packages python3 python3-venv && find_python && return
        install_packages python3.11 python3.11-venv && find_python && return
    fi
    stop "no Python 3.11 or newer found (looked for ${PYTHON:-python3, python3.11 to python3.14})" \
        "install one (apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3"
}

make_environment() {  # $1 is the Python to make it from
    step "virtual environment $VENV from $1"
    if "$1" -c 'import ensurepip' 2>/dev/null; then
        "$1" -m venv "$VENV"
    elif is_root_on_debian && install_packages "$(versioned "$1")-venv"; then
        "$1" -m venv "$VENV"
    elif unpack_package python3-pip-whl; then
        "$1" -m venv --without-pip "$VENV"
        PYTHONPATH=$(echo "$VENV"/debian/usr/share/python-wheels/pip-*.whl) "$VENV/bin/python" -m pip install -qq pip
    else
        stop "$1 cannot make virtual environments" "apt-get install $(versioned "$1")-venv"
    fi
}

versioned() { "$1" -c 'import sys; print("python%d.%d" % sys.version_info[:2])'; }
