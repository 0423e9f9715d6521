#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: kernels take the registers and the shared memory that the table says, no stack.

gpu_resources.py [--update] BUILD/gpu [TABLE]. The reports are those of gpu/compile.py,
the table is gpu/resources.csv unless named; --update writes it anew.
"""
import csv
import glob
import os
import sys

import source_files

REPORTS = 'assay_cuda-*.resources.csv'
TABLE = 'gpu/resources.csv'
COLUMNS = ('kernel', 'registers', 'static_shared_bytes')
# Of a multiprocessor of sm_90; a thread gets registers by the eight.
REGISTERS = 65536
REGISTER_UNIT = 8


def read_rows(path):
    with open(path, encoding='utf-8', newline='') as file:
        for row in csv.DictReader(file):
            yield {key: value if key == 'kernel' else int(value)
                   for key, value in row.items()}


def read_reports(folder):
    """[(path, row)], a kernel each."""
    paths = sorted(glob.glob(os.path.join(folder, REPORTS)))
    return [(path, row) for path in paths for row in read_rows(path)]


def check_kernel(row):
    """What no table can allow."""
    if row['spill_bytes'] or row['stack_bytes']:
        yield (f'has a stack of {row["stack_bytes"]} bytes and spills '
               f'{row["spill_bytes"]}; there must be none')
    if not row['threads']:
        yield 'has no launch bounds; write __launch_bounds__(threads, blocks)'
        return
    given = -(-row['registers'] // REGISTER_UNIT) * REGISTER_UNIT
    most = REGISTERS // (row['threads'] * row['blocks'])
    if given > most:
        yield (f'takes {row["registers"]} registers; {row["threads"]} threads in '
               f'{row["blocks"]} blocks leave {most}')


def check_table(row, table, table_path):
    expected = table.get(row['kernel'])
    if expected is None:
        yield f'has no row in {table_path}; look at its figures, then --update'
        return
    for column in COLUMNS[1:]:
        if row[column] > expected[column]:
            yield f'has {row[column]} {column}; {table_path} allows {expected[column]}'


def gate(folder, table_path):
    reports = read_reports(folder)
    if not reports:
        return [f'{folder}: no kernel in {REPORTS}; build gpu/libassay_cuda.so first']
    table = {}
    if os.path.exists(table_path):
        table = {row['kernel']: row for row in read_rows(table_path)}
    findings = [f'{path}: {row["kernel"]} {message}' for path, row in reports
                for message in (*check_kernel(row),
                                *check_table(row, table, table_path))]
    gone = sorted(set(table) - {row['kernel'] for _, row in reports})
    return findings + [f'{table_path}: there is no kernel {name} any more'
                       for name in gone]


def update(folder, table_path):
    """Where files share a kernel's name the larger figures count."""
    table = {}
    for _, row in read_reports(folder):
        known = table.setdefault(row['kernel'], dict(row))
        for column in COLUMNS[1:]:
            known[column] = max(known[column], row[column])
    with open(table_path, 'w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction='ignore', lineterminator='\n')
        writer.writeheader()
        writer.writerows(table[name] for name in sorted(table))


def main():
    arguments = [word for word in sys.argv[1:] if word != '--update']
    folder, table_path = arguments[0], (arguments[1:] or [TABLE])[0]
    if '--update' in sys.argv:
        update(folder, table_path)
    return source_files.report(gate(folder, table_path))


if __name__ == '__main__':
    sys.exit(main())
