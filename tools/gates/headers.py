#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gate: every header compiles alone, and included twice, with GCC and clang.

headers.py [ROOT]. Those of gpu/ do with nvcc; where there is none it says so.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

import source_files

COMPILERS = ('gcc', 'clang')
FLAGS = ('-Wall', '-Wextra', '-Wpedantic', '-Werror', '-fsyntax-only', '-I.')
C_FLAGS = ('-std=c11', '-D_GNU_SOURCE', '-x', 'c', '-')
# Headers for CUDA, by how their paths begin; a stand-in for the runtime will do.
CPLUSPLUS = ('verify/plugin/assay_plugin_cuda.h', 'tests/verify/fake_cuda/',
             'tests/gpu/')
CPLUSPLUS_FLAGS = ('-std=c++17', '-Iverify/plugin', '-Itests/verify/fake_cuda', '-x',
                   'c++', '-')
NVCC = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
NVCC_FLAGS = ('-std=c++17', '-gencode=arch=compute_90a,code=sm_90a', '-Werror',
              'all-warnings', '-I.', '-Iverify/plugin', '-ptx')


def compile_twice(root, compiler, header):
    include = f'#include "{header}"\n'
    flags = CPLUSPLUS_FLAGS if header.startswith(CPLUSPLUS) else C_FLAGS
    done = subprocess.run([compiler, *FLAGS, *flags], cwd=root, input=include * 2,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return []
    return [f'{header}:1: does not compile alone and twice with {compiler}:', done.stdout]


def compile_for_gpu(root, nvcc, header):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'twice.cu')
        with open(source, 'w', encoding='utf-8') as file:
            file.write(f'#include "{header}"\n' * 2)
        done = subprocess.run([nvcc, *NVCC_FLAGS, '-o', os.path.join(folder, 'ptx'),
                               source], cwd=root, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return []
    return [f'{header}:1: does not compile alone and twice with nvcc:', done.stdout]


def gate(root):
    paths = source_files.of_kind(root, 'c')
    headers = [path for path in paths
               if path.endswith('.h') and not path.startswith('gpu/')]
    gpu_headers = [path for path in paths
                   if path.endswith(('.h', '.cuh')) and path.startswith('gpu/')]
    jobs = [(compile_twice, root, compiler, header)
            for header in headers for compiler in COMPILERS]
    if os.path.exists(NVCC):
        jobs += [(compile_for_gpu, root, NVCC, header) for header in gpu_headers]
    elif gpu_headers:
        print('no nvcc here: headers in gpu/ are not compiled', file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: job[0](*job[1:]), jobs))
    return [finding for result in results for finding in result]


if __name__ == '__main__':
    sys.exit(source_files.report(gate(sys.argv[1] if len(sys.argv) > 1 else '.')))
