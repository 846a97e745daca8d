# Functions that `.ci/run` and `.ci/deep` share. Source it from the repository root.

# A clone is compiled once. Incremental compilation would only fill the disk.
export CARGO_INCREMENTAL=0

# Prints the name of a stage, the seconds so far, and the size of the build folder.
stage() {
    printf '\n== %s (%ss, %s on disk)\n' "$1" "$SECONDS" "$(du -sh target 2>/dev/null | cut -f1)"
}

# Says that a part could not run here.
left_out() {
    printf '!!! LEFT OUT: %s\n' "$1"
}

# Prints a command's output only when it fails.
quietly() {
    local log
    log=$(mktemp)
    if ! "$@" >"$log" 2>&1 </dev/null; then
        cat "$log"
        rm -f "$log"
        echo "failed: $*" >&2
        return 1
    fi
    rm -f "$log"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# Installs Debian packages.
apt_install() {
    [ $# -gt 0 ] || return 0
    quietly as_root apt-get update
    quietly as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@"
}

# Installs Python packages. A system Python may be managed by its distribution; the flag says that
# we know.
pip_install() {
    local install=(python3 -m pip install --quiet --disable-pip-version-check)
    quietly "${install[@]}" "$@" || quietly "${install[@]}" --break-system-packages "$@"
}

# Installs a program of crates.io, in a fixed version.
cargo_tool() {
    have "$1" || quietly cargo install --quiet --locked "$1@$2"
}

# Runs `cargo test` with the arguments, and fails if one test binary takes more than 120 seconds: a
# test that needs longer belongs into `.ci/deep`. On a machine that is busy with other things, which
# shows in a load of more than twice its cores, that is only said.
test_binaries() {
    local log status=0 slow
    log=$(mktemp)
    cargo test "$@" 2>&1 | tee "$log" || status=$?
    slow=$(awk '
        /^ +Running / { name = $0 }
        match($0, /finished in [0-9.]+s/) {
            took = substr($0, RSTART + 12, RLENGTH - 13) + 0
            if (took > 120) print "takes " took " s, 120 are allowed:" name
        }' "$log")
    rm -f "$log"
    if [ -n "$slow" ]; then
        printf '%s\n' "$slow"
        awk -v cores="$(nproc)" '{ exit $1 > 2 * cores }' /proc/loadavg && status=1
    fi
    return "$status"
}
