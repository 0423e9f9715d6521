#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: the last 20 commits say `area: what` in at most 65 characters. commits.py [ROOT]

Passes where there is no history to look at.
"""
import re
import sys

import source_files

SUBJECT = re.compile(r'[a-z0-9][a-z0-9_,./-]*( [a-z0-9_,./-]+)?: \S')
SUBJECT_CHARACTERS = 65


def check_message(message):
    lines = message.strip('\n').split('\n')
    if not SUBJECT.match(lines[0]):
        yield 'the subject must read `area: what`'
    if len(lines[0]) > SUBJECT_CHARACTERS:
        yield f'the subject has {len(lines[0])} characters; at most {SUBJECT_CHARACTERS}'
    if lines[0].endswith('.'):
        yield 'the subject ends with a full stop'
    if len(lines) > 1 and lines[1]:
        yield 'the second line must be blank'


def gate(root):
    if not source_files.is_repository(root):
        print('no git history: nothing to check')
        return []
    log = source_files.git(root, 'log', '-20', '--no-merges', '--format=%h%n%B%x00') or ''
    findings = []
    for entry in filter(str.strip, log.split('\0')):
        name, _, message = entry.lstrip('\n').partition('\n')
        findings += [f'{name}: {finding}: {message.splitlines()[:1]}'
                     for finding in check_message(message)]
    return findings


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))
