#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: runs of one suite computed the same bits. same_bits.py EXPECTED OTHER...

Each file is what `assay verify --json` wrote. Everything in a case's object but the time
must agree, the hash of every candidate output included.
"""
import json
import sys

import source_files

TIMES = {'seconds'}
HASH = 'candidate_hash'


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items()
                if key not in TIMES}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


def outputs(case):
    listed = case.get('outputs') or []
    return list(listed.values()) if isinstance(listed, dict) else listed


def cases(path):
    with open(path, encoding='utf-8') as file:
        objects = [json.loads(line) for line in file if line.strip()]
    return [without_times(item) for item in objects if isinstance(item.get('case'), str)]


def check_hashes(path, listed):
    if not listed:
        yield f'{path}: no case in it'
    for case in listed:
        if not outputs(case) or not all(output.get(HASH) for output in outputs(case)):
            yield f'{path}: no {HASH} for some output of: {case["case"]}'


def gate(paths):
    runs = {path: cases(path) for path in paths}
    findings = [message for path, listed in runs.items()
                for message in check_hashes(path, listed)]
    expected = runs[paths[0]]
    for path in paths[1:]:
        if len(runs[path]) != len(expected):
            findings.append(f'{path}: {len(runs[path])} cases, not {len(expected)}')
        findings += [f'{path}: differs from {paths[0]} in: {one["case"]}\n'
                     f'  {json.dumps(one)}\n  {json.dumps(other)}'
                     for one, other in zip(expected, runs[path]) if one != other]
    if len(paths) < 2:
        findings.append('two files are needed to compare')
    return findings


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1:])))
