#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints how many test cases passed and failed. count_tests.py TESTLOG.json (meson's)

A TAP program counts as its test cases, any other as one. A program that broke (crash,
time out, too few cases) without naming a failed case counts as one failure.
"""
import json
import os
import re
import sys

CASE = re.compile(r'^(not ok|ok)\b(?!.*# SKIP)', re.MULTILINE | re.IGNORECASE)


def count(test):
    if test['result'] == 'SKIP':
        return 0, 0
    listed = CASE.findall(test.get('stdout') or '')
    failed = sum(word.lower() == 'not ok' for word in listed)
    passed = len(listed) - failed
    if test['result'] in ('OK', 'EXPECTEDFAIL'):
        return max(passed, 1), 0
    return passed, max(failed, 1)


def totals(path):
    if not os.path.exists(path):
        return 0, 0
    with open(path, encoding='utf-8') as file:
        counts = [count(json.loads(line)) for line in file if line.strip()]
    return sum(passed for passed, _ in counts), sum(failed for _, failed in counts)


if __name__ == '__main__':
    print(*totals(sys.argv[1]))
