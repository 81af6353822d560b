#!/usr/bin/env bash
# run.sh -- builds the object loader's tests for AArch64 and runs them under qemu-user: run.sh BUILD-FOLDER
# PYTHON (one with llvmlite), CMAKE and NINJA name the tools; by default they are taken from PATH.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: run.sh BUILD-FOLDER}
cmake=${CMAKE:-cmake}
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

"$cmake" -S "$here" -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v "${NINJA:-ninja}")" \
  -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
  -DTACK_TEST_PYTHON="$(command -v "${PYTHON:-python3}")" "${launcher[@]}"
"$cmake" --build "$build" -j "${JOBS:-2}"
for name in test_object_loader test_object_damage; do
  qemu-aarch64 "$build/$name"
done
