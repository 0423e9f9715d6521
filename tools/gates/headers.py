#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: every header compiles alone, and included twice, with GCC and clang.

headers.py [ROOT]
"""
import concurrent.futures
import os
import subprocess
import sys

import source_files

COMPILERS = ('gcc', 'clang')
FLAGS = ('-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Wpedantic', '-Werror',
         '-fsyntax-only', '-I.', '-x', 'c', '-')


def compile_twice(root, compiler, header):
    include = f'#include "{header}"\n'
    done = subprocess.run([compiler, *FLAGS], cwd=root, input=include * 2, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return []
    return [f'{header}:1: does not compile alone and twice with {compiler}:', done.stdout]


def gate(root):
    headers = [path for path in source_files.of_kind(root, 'c') if path.endswith('.h')]
    jobs = [(root, compiler, header) for header in headers for compiler in COMPILERS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: compile_twice(*job), jobs))
    return [finding for result in results for finding in result]


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))
