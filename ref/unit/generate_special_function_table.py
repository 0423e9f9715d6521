#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Turns corpus/units/sfu_hopper.csv into a C header of coefficient tables.

usage: generate_special_function_table.py TABLE.csv OUTPUT.h
"""
import csv
import sys

SEGMENTS = {"ex2": 64, "lg2": 64, "rcp": 128, "rsqrt_even": 64, "rsqrt_odd": 64}


def read_tables(path):
    tables = {name: [] for name in SEGMENTS}
    with open(path, newline="", encoding="ascii") as file:
        rows = csv.reader(line for line in file if not line.startswith("#"))
        for name, segment, *coefficients in rows:
            if name not in tables:
                sys.exit(f"{path}: function {name} is none of {', '.join(SEGMENTS)}")
            if int(segment) != len(tables[name]) or len(coefficients) != 3:
                sys.exit(f"{path}: {name},{segment} is not the next row of c0, c1, c2 "
                         f"(segment {len(tables[name])} is)")
            tables[name].append([int(c) for c in coefficients])
    for name, segments in SEGMENTS.items():
        if len(tables[name]) != segments:
            sys.exit(f"{path}: {name} has {len(tables[name])} segments, not {segments}")
    return tables


def write_header(path, tables):
    lines = ["/* SPDX-License-Identifier: MIT */",
             "/* Generated from corpus/units/sfu_hopper.csv for special_function.c. */",
             "#include <stdint.h>", "",
             "struct segment {", "    int32_t c0, c1, c2;", "};"]
    for name, rows in tables.items():
        lines += ["", f"static const struct segment {name}_table[{len(rows)}] = {{"]
        lines += ["    { %d, %d, %d }," % tuple(row) for row in rows]
        lines += ["};"]
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: generate_special_function_table.py TABLE.csv OUTPUT.h")
    write_header(sys.argv[2], read_tables(sys.argv[1]))


if __name__ == "__main__":
    main()
