#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: no file over 600 lines, no C function over 80. lengths.py [ROOT]

A function reaches from a line at column 0 with a name and a parenthesis to the closing
brace at column 0, as clang-format lays it out.
"""
import re
import sys

import source_files

FILE_LINES = 600
FUNCTION_LINES = 80
OPENING = re.compile(r'(?!typedef\b)(?=[A-Za-z_])[^=;]*?\b(\w+)\s*\(')


def functions(lines):
    """(name, first line, number of lines) of each function."""
    start, inside = None, False
    for number, line in enumerate(lines, 1):
        if inside:
            if line.startswith('}'):
                yield start[0], start[1], number - start[1] + 1
                start, inside = None, False
            continue
        opening = OPENING.match(line)
        if opening and start is None:
            start = (opening[1], number)
        if line == '{' and start:
            inside = True
        elif line.endswith((';', '}')) or not line:
            start = None


def gate(root):
    findings = []
    for path in source_files.of_kind(root, 'c', 'python', 'shell', 'meson'):
        lines = source_files.read(root, path).decode('utf-8', 'replace').splitlines()
        if len(lines) > FILE_LINES:
            findings.append(f'{path}:1: {len(lines)} lines; at most {FILE_LINES}')
        if not path.endswith(source_files.C_ENDINGS):
            continue
        for name, start, length in functions(lines):
            if length > FUNCTION_LINES:
                findings.append(f'{path}:{start}: {name} has {length} lines; '
                                f'at most {FUNCTION_LINES}')
    return findings


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))
