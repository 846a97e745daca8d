# `just` lists these; https://just.systems. Each only calls what is written in .ci/.

_list:
    @just --list

# All tests with the features of a plain build.
test:
    cargo test --workspace

# What every change must pass.
gate:
    .ci/run

# The tests that the gate leaves out: engines, applications, targets, search, packages, deny.
deep *jobs:
    .ci/deep {{ jobs }}

# Licences, known flaws and sources of what we depend on: `cargo install cargo-deny` first.
deny:
    cargo deny check

# What a release consists of, in target/dist: needs rustup and musl-tools.
dist:
    packaging/dist

# Counts instructions and compares them with the committed table.
instructions *arguments:
    .ci/instructions {{ arguments }}

# Builds the server and prints what others feel while the largest commands run.
long-commands *arguments:
    cargo build --release
    .ci/long-commands target/release/tidewheel {{ arguments }}
