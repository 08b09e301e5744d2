#!/usr/bin/env bash
# What the Python tests cannot see of the C kernels: other compilers, processors, C libraries, and sanitizers.
#
#   tests/check_kernels.sh [--skip-missing] CHECK...
#
#   warnings    GCC and clang have none, -Wconversion and -Wshadow included
#   sanitizers  kernel_bits.c and the kernels under ASan and UBSan
#   tsan        the same under TSan, four threads
#   aarch64     cross-compiled, run by qemu-user
#   musl        linked with musl instead of glibc
#   mingw       compiled for Windows; run if there is wine
#   all         all of these
#   python      the Python tests, with the extension under ASan and UBSan, in a virtual environment of its own
#
# All but warnings and python end with a comparison of the bits with those on record, kernel_bits.txt. A check whose tools are
# missing says so, and the exit status is then 1, with --skip-missing 0. Each kernel has its flags from setup.py.
set -euo pipefail
cd "$(dirname "$0")/.."

kernels=src/posenc/kernel
skip_missing=0
missing=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# need COMMAND PACKAGE: whether there is such a command
need() {
    command -v "$1" >/dev/null && return
    printf '!!!! not checked: there is no %s here (Debian: apt-get install %s)\n' "$1" "$2"
    missing=1
    return 1
}

# compile COMPILER FOLDER FLAG...: objects of kernels and driver; of the kernels only those for the compiler's processor
compile() {
    local compiler=$1 folder=$work/$2 source flags
    shift 2
    mkdir -p "$folder"
    for source in "$kernels"/*.c tests/kernel_bits.c; do
        case $source:$("$compiler" -dumpmachine) in
            *kernel_avx*:x86_64*) ;;
            *kernel_avx*) continue ;;
        esac
        mapfile -t flags < <(python3 tests/kernel_flags.py "$source")
        "$compiler" "${flags[@]}" "$@" "-I$kernels" -c "$source" -o "$folder/$(basename "$source" .c).o"
    done
}

# build COMPILER NAME FLAG...: the driver as $work/NAME/kernel_bits
build() {
    compile "$@"
    "$1" "${@:3}" "$work/$2"/*.o -o "$work/$2/kernel_bits" -lm -pthread
}

# same_bits COMMAND...: runs the driver and compares what it prints
same_bits() {
    "$@" | tr -d '\r' >"$work/bits"
    diff "$work/bits" tests/kernel_bits.txt
    printf '%s cases, the bits on record\n' "$(wc -l <"$work/bits")"
}

warnings() {
    local strict=(-Wall -Wextra -Wconversion -Wshadow -Werror)
    if need gcc gcc; then
        compile gcc gcc "${strict[@]}"
    fi
    if need clang clang; then
        compile clang clang "${strict[@]}"
    fi
}

sanitizers() {
    need gcc gcc || return 0
    build gcc sanitizers -g -fsanitize=address,undefined -fno-sanitize-recover=all
    same_bits "$work/sanitizers/kernel_bits"
}

tsan() {
    need gcc gcc || return 0
    build gcc tsan -g -fsanitize=thread
    same_bits "$work/tsan/kernel_bits" --threads 4
}

aarch64() {
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu || return 0
    need qemu-aarch64 qemu-user || return 0
    build aarch64-linux-gnu-gcc aarch64 -static
    same_bits qemu-aarch64 "$work/aarch64/kernel_bits"
}

musl() {
    need musl-gcc musl-tools || return 0
    build musl-gcc musl -static
    same_bits "$work/musl/kernel_bits"
}

mingw() {
    need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 || return 0
    build x86_64-w64-mingw32-gcc mingw -static
    if command -v wine >/dev/null; then
        export WINEPREFIX=$work/wine WINEDEBUG=-all
        same_bits wine "$work/mingw/kernel_bits.exe"
        wineserver --wait # which would write into the folder while that is removed
    else
        echo "built, not run: there is no wine here"
    fi
}

python() {
    need gcc gcc || return 0
    local sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
    python3 -m venv "$work/python"
    mkdir "$work/source" # not here, where what other builds left would be taken, and this one left to them
    cp -R LICENSE MANIFEST.in README.md pyproject.toml setup.py src "$work/source"
    # in CC, not CFLAGS: what setup.py links to probe for OpenMP needs it too
    CC="gcc $sanitize" CFLAGS="-g -fno-omit-frame-pointer" POSENC_OPENMP=1 \
        "$work/python/bin/pip" install -q "$work/source[test]"
    # The interpreter is not under ASan: it is loaded beforehand, and what Python keeps to its end is no leak. Requests too
    # large for any machine are to fail, as they do without ASan. Left out: a process without address space, which ASan needs.
    LD_PRELOAD=$(gcc -print-file-name=libasan.so) POSENC_EXAMPLES=100 \
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
        "$work/python/bin/python" -m pytest -q -p no:cacheprovider \
        --deselect tests/test_faults.py::test_no_address_space_at_all
}

all=(warnings sanitizers tsan aarch64 musl mingw)
checks=()
for argument in "$@"; do
    case $argument in
        --skip-missing) skip_missing=1 ;;
        all) checks+=("${all[@]}") ;;
        warnings | sanitizers | tsan | aarch64 | musl | mingw | python) checks+=("$argument") ;;
        *) set -- && break ;;
    esac
done
if [ $# = 0 ] || [ ${#checks[@]} = 0 ]; then
    sed -n 4p tests/check_kernels.sh >&2
    exit 2
fi

for check in "${checks[@]}"; do
    printf '==== %s\n' "$check"
    begun=$SECONDS
    "$check"
    printf '%s: %d s\n' "$check" $((SECONDS - begun))
done
[ "$missing" = 0 ] || [ "$skip_missing" = 1 ]
