#!/usr/bin/env bash
# Prints how much of the stripped library each instruction set takes:  tools/table_sizes.sh BUILD_DIR
# Code of a Highway table is what its namespace holds; the rest counts as "all tables".
set -euo pipefail
library=$1/libetalon.a
nm=${NM:-nm} strip=${STRIP:-strip}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$strip" --strip-unneeded -o "$work/stripped.a" "$library"
printf '%-24s %8d KiB, the stripped archive (%d KiB as built)\n' libetalon.a \
  "$(($(stat -c %s "$work/stripped.a") / 1024))" "$(($(stat -c %s "$library") / 1024))"
"$nm" --print-size --defined-only -C "$library" 2>/dev/null | awk '
  NF >= 4 && $3 ~ /^[tTwWrRdDvV]$/ {
    name = "all tables"
    if (match($0, /N_[A-Z0-9_]+/)) name = substr($0, RSTART, RLENGTH)
    size = 0
    for (i = 1; i <= length($2); i++) size = size * 16 + index("0123456789abcdef", tolower(substr($2, i, 1))) - 1
    bytes[name] += size
  }
  END { for (name in bytes) printf "%-24s %8d KiB of code and constants\n", name, bytes[name] / 1024 }' | sort
