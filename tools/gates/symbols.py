#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: our archives export assay_ names only, and the oracle needs base alone.

symbols.py BUILD
"""
import glob
import os
import subprocess
import sys

import source_files

PREFIX = 'assay_'


def symbols(archive, *options):
    listing = subprocess.run(['nm', '--format=posix', *options, archive], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    rows = map(str.split, listing.stdout.splitlines())
    return {row[0] for row in rows if len(row) > 1 and len(row[1]) == 1}


def defined(archive):
    return symbols(archive, '--extern-only', '--defined-only')


def check_prefix(archives):
    for archive in archives:
        for symbol in sorted(defined(archive)):
            if not symbol.startswith(PREFIX):
                yield f'{archive}: {symbol} has no prefix {PREFIX}'


def check_oracle(oracle, base):
    known = defined(oracle) | defined(base)
    for symbol in sorted(symbols(oracle, '--undefined-only') - known):
        if symbol.startswith(PREFIX):
            yield f'{oracle}: needs {symbol}, which is neither in it nor in {base}'


def gate(build):
    # Those of tests are linked into nothing of ours.
    archives = sorted(
        path for path in glob.glob(os.path.join(build, '**', 'lib*.a'), recursive=True)
        if os.path.relpath(path, build).split(os.sep)[0] != 'tests')
    found = {os.path.basename(archive): archive for archive in archives}
    missing = {'libassay_base.a', 'libassay_oracle.a'} - set(found)
    if missing:
        return [f'{build}: there is no {name}' for name in sorted(missing)]
    return [*check_prefix(archives),
            *check_oracle(found['libassay_oracle.a'], found['libassay_base.a'])]


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1])))
