#!/usr/bin/env python3
"""Runs every row of etalon_bench on small sizes for no time: all pass their checks and all numbers are there.

    smoke_test.py ETALON_BENCH

Nothing is asserted about speed.
"""

import json
import math
import subprocess
import sys
import tempfile

SMALL = ["--shrink=64", "--rounds=1", "--sample=0"]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)


def main():
    bench = sys.argv[1]
    names = run(bench, *SMALL, "--benchmark_list_tests").stdout.split()
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        table = run(bench, *SMALL, f"--benchmark_out={out.name}")
        rows = json.load(open(out.name, encoding="utf-8"))["benchmarks"]
    faults = []
    if table.returncode != 0:
        faults.append(f"exit code {table.returncode}")
    if len(rows) != len(names) or len(rows) < 60 or table.stdout.count("\n") != len(rows) + 1:
        faults.append(f"{len(names)} rows are listed, {len(rows)} were measured, 60 or more expected")
    for kind in ["limit", "prefill", "decode", "scores", "softmax", "weighted_sum", "merge", "overhead", "prf1", "prf2", "prf3", "prf4"]:
        if not any(row["name"].startswith(kind + "/") for row in rows):
            faults.append(f"no row is called {kind}")
    for row in rows:
        name = row["name"]
        if row.get("error_occurred") or row.get("skipped"):
            faults.append(f"{name}: {row.get('error_message') or row.get('skip_message')}")
            continue
        if not name.startswith("limit/") and not 0 <= row.get("rms", math.nan) < 1e-5:
            faults.append(f"{name}: relative RMS error {row.get('rms')}")
        if not row["real_time"] > 0 or not all(math.isfinite(x) for x in row.values() if isinstance(x, float)):
            faults.append(f"{name}: not a number among {row}")
    reach = run(bench, *SMALL, "--reach", "--benchmark_list_tests").stdout.split()
    if not 30 <= len(reach) < len(names):
        faults.append(f"--reach has {len(reach)} of {len(names)} rows")
    print(f"{len(rows)} rows, {len(reach)} of them in the reach table")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
