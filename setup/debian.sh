# Messages, and packages of Debian or Ubuntu: installed as root, or unpacked beside the environment without it.
# Sourced by the other scripts; $VENV is the virtual environment's folder.

step() { printf 'set-up: %s\n' "$*" >&2; }

stop() {  # what is wrong, then what to do next
    printf 'set-up stopped: %s\n  next: %s\n' "$1" "$2" >&2
    exit 3
}

is_root_on_debian() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

install_packages() {  # as root; fails where one cannot be had
    step "system packages: $*"
    apt-get update -qq >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" </dev/null >/dev/null
}

unpack_package() {  # without root: $VENV/debian becomes the package's /
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    step "unpacking $1 into $VENV/debian (not root, so nothing is installed outside)"
    mkdir -p "$VENV"/debian/apt/{state/lists,cache/archives}/partial
    (
        cd "$VENV/debian/apt" || exit 1
        as_user=(-qq -o Dir::State="$PWD/state" -o Dir::Cache="$PWD/cache" -o Dir::State::status=/var/lib/dpkg/status)
        apt-get "${as_user[@]}" update && apt-get "${as_user[@]}" download "$1" && dpkg-deb -x "$1"_*.deb ..
    ) >&2
}

ensure_test_packages() {  # those of test_packages.txt; a test that lacks its own is skipped and says so
    local package missing=()
    for package in $(sed 's/#.*//' setup/test_packages.txt); do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    if is_root_on_debian; then
        install_packages "${missing[@]}" && return
        missing=($(for package in "${missing[@]}"; do install_packages "$package" || echo "$package"; done))
        [ ${#missing[@]} = 0 ] && return
    fi
    step "not installed, so tests that use them are skipped: ${missing[*]}"
}
