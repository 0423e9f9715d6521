#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What gpu/compile.py and the gates on gpu/ let through, and what they don't.

The texts are what nvcc 13.0 printed for the kernels that are named in them.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(PROJECT, 'gpu')]
import compile as driver  # noqa: E402

NVCC = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
LICENCE = '/* SPDX-License-Identifier: MIT */\n'
PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN3gpu5stackEPfi' for 'sm_90a'
ptxas info    : Function properties for _ZN3gpu5stackEPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
ptxas info    : Compile time = 47.084 ms
ptxas info    : Compiling entry function '_Z4tmplILi128ELb1EEvPf' for 'sm_90a'
ptxas info    : Function properties for _Z4tmplILi128ELb1EEvPf
    344 bytes stack frame, 384 bytes spill stores, 408 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 344 bytes cumulative stack size, \
512 bytes smem
ptxas info    : Compile time = 2.219 ms
"""
PTX = """.version 9.0
.visible .entry _Z4tmplILi128ELb1EEvPf(
\t.param .u64 .ptr .align 1 _Z4tmplILi128ELb1EEvPf_param_0
)
.maxntid 384, 2, 1
.minnctapersm 2
{
\tret;
}
.entry _ZN3gpu5stackEPfi(
\t.param .u64 .ptr .align 1 _ZN3gpu5stackEPfi_param_0
)
{
\tret;
}
"""
HEAD = 'kernel,registers,static_shared_bytes,stack_bytes,spill_bytes,threads,blocks\n'
GOOD = '"gemm<128, true>",168,512,0,0,384,1\n'


class Driver(unittest.TestCase):
    def test_figures_of_each_kernel(self):
        kernels, advice, others = driver.read_resources(PTXAS)
        self.assertEqual((advice, others), ([], []))
        self.assertEqual(kernels, {
            '_ZN3gpu5stackEPfi': {'registers': 30, 'static_shared_bytes': 0,
                                  'stack_bytes': 0, 'spill_bytes': 0},
            '_Z4tmplILi128ELb1EEvPf': {'registers': 12, 'static_shared_bytes': 512,
                                       'stack_bytes': 344, 'spill_bytes': 792}})

    def test_what_is_no_report_is_kept_apart(self):
        told = ('ptxas info    : (C7508) Potential Performance Loss: \'setmaxnreg\' '
                'ignored to maintain minimum register requirements.')
        warned = 'gemm.cu(3): warning #177-D: variable "x" was declared but never used'
        _, advice, others = driver.read_resources(PTXAS + f'{told}\n{warned}\n')
        self.assertEqual((advice, others), ([told], [warned]))

    def test_launch_bounds(self):
        self.assertEqual(driver.read_bounds(PTX), {'_Z4tmplILi128ELb1EEvPf': (768, 2),
                                                   '_ZN3gpu5stackEPfi': (0, 1)})

    def test_names_as_they_are_written(self):
        for demangled, name in (
                ('void tmpl<128, true>(float*)', 'tmpl<128, true>'),
                ('void gpu::a<(int)8, (gpu::kind)1>(gpu::b<int>)',
                 'gpu::a<8, (gpu::kind)1>'),
                ('void gemm<(anonymous namespace)::tile<8> >(int (*)(int))',
                 'gemm<tile<8>>'),
                ('(anonymous namespace)::quantise(float*)', 'quantise'),
                ('c_name', 'c_name')):
            self.assertEqual(driver.plain_name(demangled), name)


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def plant(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def run_gate(self, name, *arguments):
        program = os.path.join(PROJECT, 'tools', 'gates', name + '.py')
        return subprocess.run(['/usr/bin/python3', '-B', program, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Resources(Tree):
    def setUp(self):
        super().setUp()
        self.table = os.path.join(self.root, 'resources.csv')

    def gate(self, *options):
        return self.run_gate('gpu_resources', *options, self.root, self.table)

    def reports(self, words, row, table=GOOD):
        self.plant('assay_cuda-a_cu.resources.csv', HEAD + row)
        self.plant('resources.csv', 'kernel,registers,static_shared_bytes\n'
                   + ''.join(','.join(line.rsplit(',', 6)[:3]) + '\n'
                             for line in table.splitlines()))
        done = self.gate()
        self.assertIn(words, done.stdout)
        self.assertEqual(done.returncode, 1 if words else 0, done.stdout)

    def test_kernels_at_their_limits_pass(self):
        self.reports('', GOOD)
        self.reports('', GOOD.replace('168', '160'))
        self.reports('', 'a,128,0,0,0,256,2\n', 'a,128,0,0,0,0,0\n')

    def test_stack_and_spills_are_reported(self):
        self.reports('<128, true> has a stack of 8 bytes', GOOD.replace('0,0', '8,0', 1))
        self.reports('spills 4', GOOD.replace('0,0', '0,4', 1))

    def test_more_registers_than_the_launch_leaves_are_reported(self):
        wide = '"gemm<128, true>",169,512,0,0,384,1\n'
        self.reports('takes 169 registers; 384 threads in 1 blocks leave 170', wide, wide)
        pair = 'a,129,0,0,0,256,2\n'
        self.reports('256 threads in 2 blocks leave 128', pair, pair)

    def test_kernel_without_launch_bounds_is_reported(self):
        self.reports('has no launch bounds', GOOD.replace('384', '0'))

    def test_figures_above_the_table_are_reported(self):
        self.reports('has 168 registers', GOOD, GOOD.replace('168', '160'))
        self.reports('has 512 static_shared_bytes', GOOD, GOOD.replace('512', '511'))

    def test_kernels_that_one_side_lacks_are_reported(self):
        self.reports('has no row in', GOOD, '')
        self.reports('there is no kernel b any more', GOOD, GOOD + 'b,8,0,0,0,32,1\n')

    def test_nothing_built_is_reported(self):
        done = self.gate()
        self.assertEqual(done.returncode, 1)
        self.assertIn('build gpu/libassay_cuda.so first', done.stdout)

    def test_update_takes_the_larger_figures_of_a_shared_name(self):
        self.plant('assay_cuda-a_cu.resources.csv', HEAD + GOOD + 'fill,8,64,0,0,32,1\n')
        self.plant('assay_cuda-b_cu.resources.csv', HEAD + 'fill,10,32,0,0,32,1\n')
        self.plant('assay_cuda_faults-a_cu.resources.csv', HEAD + 'x,8,8,8,8,32,1\n')
        self.assertEqual(self.gate('--update').returncode, 0)
        with open(self.table, encoding='utf-8') as file:
            self.assertEqual(file.read(), 'kernel,registers,static_shared_bytes\n'
                             'fill,10,64\n"gemm<128, true>",168,512\n')

    def test_update_allows_no_stack(self):
        self.plant('assay_cuda-a_cu.resources.csv', HEAD + 'a,8,0,8,0,32,1\n')
        self.assertIn('a has a stack', self.gate('--update').stdout)


class Sources(Tree):
    """The gates on all sources see CUDA's, too."""

    def reports(self, words, gate, name, text):
        self.plant(name, text)
        done = self.run_gate(gate, self.root)
        self.assertIn(words, done.stdout)
        self.assertEqual(done.returncode, 1 if words else 0, done.stdout)

    def test_layers(self):
        self.plant('gpu/ptx/a.cuh', LICENCE)
        self.plant('verify/plugin/a.h', LICENCE)
        self.plant('ref/format/a.h', LICENCE)
        for header, words in (('"gpu/ptx/a.cuh"', ''), ('"verify/plugin/a.h"', ''),
                              ('<assay_plugin_cuda.h>', ''), ('<cuda.h>', ''),
                              ('"ref/format/a.h"', 'gpu/ must not include "ref/form'),
                              ('"ptx/a.cuh"', 'no path from the project root')):
            for name in 'gpu/a.cu', 'gpu/gemm/a.cuh':
                self.reports(words, 'layers', name, f'{LICENCE}#include {header}\n')
                os.unlink(os.path.join(self.root, name))

    def test_text_and_lengths(self):
        body = '    x++;\n' * 77
        for ending in 'cu', 'cuh':
            name = f'gpu/gemm/a.{ending}'
            self.reports(f'{name}:2: a tab', 'text', name, LICENCE + '\tint x;\n')
            self.reports(f'{name}:2: f has 81 lines', 'lengths', name,
                         f'{LICENCE}__global__ void f(int x)\n{{\n{body}    x--;\n}}\n')

    @unittest.skipUnless(os.path.exists(NVCC), 'no nvcc here')
    def test_headers_with_nvcc(self):
        guarded = '#ifndef A_H\n#define A_H\n{}\n#endif\n'
        self.reports('', 'headers', 'gpu/a.cuh', LICENCE + guarded.format(
            '__device__ __forceinline__ int f()\n{\n    return threadIdx.x;\n}'))
        self.reports('gpu/ptx/a.h:1: does not compile', 'headers', 'gpu/ptx/a.h',
                     LICENCE + guarded.format('uint8_t f(CUtensorMap);'))
        self.reports('already been defined', 'headers', 'gpu/ptx/a.h',
                     LICENCE + 'struct s {\n    int a;\n};\n')


@unittest.skipUnless(os.path.exists(NVCC), 'no nvcc here')
class Compiler(unittest.TestCase):
    """The driver with the real thing."""
    SPILLS = """extern "C" __global__ void __launch_bounds__(1024, 2) many(float *p)
{
    float a[64];
#pragma unroll
    for (int i = 0; i < 64; i++)
        a[i] = p[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++)
        p[(63 - i) * 1024 + threadIdx.x] = a[i] * a[(i * 7 + 1) % 64];
}
"""

    def compile(self, source, *options, driver_options=()):
        """(exit status, what was printed, the report or None)."""
        with tempfile.TemporaryDirectory() as folder:
            base = os.path.join(folder, 'a')
            with open(base + '.cu', 'w', encoding='utf-8') as file:
                file.write(LICENCE + source)
            done = subprocess.run(
                ['/usr/bin/python3', '-B', os.path.join(PROJECT, 'gpu', 'compile.py'),
                 '--nvcc', NVCC, '--object', base + '.o', '--report', base + '.csv',
                 '--depfile', base + '.d', *driver_options, base + '.cu', '--', '-O3',
                 '-std=c++17',
                 '-gencode=arch=compute_90a,code=sm_90a', '-Xcompiler', '-Wall',
                 *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(os.path.exists(base + '.o'), done.returncode == 0)
            if not os.path.exists(base + '.csv'):
                return done.returncode, done.stdout, None
            with open(base + '.csv', encoding='utf-8') as file:
                return done.returncode, done.stdout, file.read()

    def test_clean_kernel_is_reported(self):
        status, told, report = self.compile(
            'template <int n> __global__ void __launch_bounds__(64, 3) scale(float *p)\n'
            '{\n    __shared__ float s[n];\n    s[threadIdx.x] = p[threadIdx.x];\n'
            '    __syncthreads();\n    p[threadIdx.x] = s[63 - threadIdx.x];\n}\n'
            'template __global__ void scale<128>(float *p);\n')
        self.assertEqual((status, told), (0, ''))
        self.assertRegex(report, r'^kernel,.*\nscale<128>,\d+,512,0,0,64,3\n$')

    def test_spills_are_errors_where_asked_and_reported_else(self):
        status, told, report = self.compile(self.SPILLS, '-Xptxas', '-warn-spills')
        self.assertEqual((status, report), (1, None))
        self.assertIn('spilled to local memory', told)
        status, told, report = self.compile(self.SPILLS)
        self.assertEqual((status, told), (0, ''))
        self.assertRegex(report, r'many,32,0,[1-9]\d*,[1-9]\d*,1024,2\n')

    def test_warnings_are_errors(self):
        for source in ('__global__ void k(int *p)\n{\n    int unused;\n    *p = 1;\n}\n',
                       'static int f(int x)\n{\n    return x;\n}\n'):
            status, told, report = self.compile(source)
            self.assertEqual((status, report), (1, None), told)

    def test_advice_is_an_error_unless_allowed(self):
        source = ('__global__ void k(int *p)\n{\n'
                  '    asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");\n'
                  '    p[0] = 1;\n}\n')
        status, told, report = self.compile(source)
        self.assertEqual((status, report), (1, None))
        self.assertIn('setmaxnreg', told)
        status, told, report = self.compile(source, driver_options=['--advice-allowed'])
        self.assertEqual(status, 0)
        self.assertIn('setmaxnreg', told)
        self.assertRegex(report, r'\nk,')


if __name__ == '__main__':
    unittest.main(argv=sys.argv)
