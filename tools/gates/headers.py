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
FLAGS = ('-Wall', '-Wextra', '-Wpedantic', '-Werror', '-fsyntax-only', '-I.')
C_FLAGS = ('-std=c11', '-D_GNU_SOURCE', '-x', 'c', '-')
# Headers for CUDA, by how their paths begin; a stand-in for the runtime will do.
CPLUSPLUS = ('verify/plugin/assay_plugin_cuda.h', 'tests/verify/fake_cuda/')
CPLUSPLUS_FLAGS = ('-std=c++17', '-Iverify/plugin', '-Itests/verify/fake_cuda', '-x',
                   'c++', '-')


def compile_twice(root, compiler, header):
    include = f'#include "{header}"\n'
    flags = CPLUSPLUS_FLAGS if header.startswith(CPLUSPLUS) else C_FLAGS
    done = subprocess.run([compiler, *FLAGS, *flags], cwd=root, input=include * 2,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
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
