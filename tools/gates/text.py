#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: what every text file keeps to. text.py [ROOT]

Tabs, carriage returns, trailing blanks, the final newline, characters nobody sees,
90 columns, the licence line, names that say nothing, file sizes.
"""
import os
import re
import sys
import unicodedata

import source_files

COLUMNS = 90
FILE_BYTES = 4 << 20
TREE_BYTES = 50 << 20
SPDX = 'SPDX-License-Identifier: MIT'
CODE = ('c', 'python', 'shell', 'meson')
VAGUE = {'util', 'utils', 'common', 'misc', 'helper', 'helpers'}
INVISIBLE = {'Cc', 'Cf', 'Co', 'Zl', 'Zp', 'Zs'}


def is_invisible(character):
    return character not in ' \t\r' and unicodedata.category(character) in INVISIBLE


def check_line(line, is_code):
    if '\t' in line:
        yield 'a tab; indent with spaces'
    if '\r' in line:
        yield 'a carriage return; lines end with a newline only'
    if line.rstrip('\r') != line.rstrip():
        yield 'trailing blanks'
    for character in filter(is_invisible, line):
        yield f'the invisible character U+{ord(character):04X}'
        break
    if is_code and len(line) > COLUMNS:
        yield f'{len(line)} columns; at most {COLUMNS}'


def check_licence(lines, file_kind):
    if file_kind == 'c' and lines[:1] != [f'/* {SPDX} */']:
        yield f'1: the first line must be /* {SPDX} */'
    if file_kind in ('python', 'shell'):
        place = 1 if lines[0].startswith('#!') else 0
        if lines[place:place + 1] != [f'# {SPDX}']:
            yield f'{place + 1}: the line must be # {SPDX}'


def check_text(data, file_kind):
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError as error:
        yield f'1: no UTF-8 at byte {error.start}'
        return
    lines = text.split('\n')
    if lines.pop() != '':
        yield f'{len(lines) + 1}: no newline at the end'
    elif lines[-1:] == ['']:
        yield f'{len(lines)}: blank lines at the end'
    for number, line in enumerate(lines, 1):
        for message in check_line(line, file_kind in CODE):
            yield f'{number}: {message}'
    yield from check_licence(lines or [''], file_kind)


def check_name(path):
    for part in path.split(os.sep):
        if VAGUE & set(re.split(r'[^a-z0-9]+', part.lower())):
            yield f'1: the name {part} does not say what it is for'


def gate(root):
    findings, total = [], 0
    for path in source_files.all_files(root):
        data = source_files.read(root, path)
        file_kind = source_files.kind(root, path)
        total += len(data)
        messages = list(check_name(path))
        if len(data) > FILE_BYTES:
            messages.append(f'1: {len(data)} bytes; at most {FILE_BYTES}')
        if file_kind != 'binary':
            messages += check_text(data, file_kind)
        findings += [f'{path}:{message}' for message in messages]
    if total > TREE_BYTES:
        findings.append(f'.: {total} bytes in all files; at most {TREE_BYTES}')
    return findings


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))
