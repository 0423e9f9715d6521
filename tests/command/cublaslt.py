# SPDX-License-Identifier: MIT
"""gpu/cublaslt.cu on stand-ins for the CUDA runtime and for cuBLASLt that need no GPU:
what it claims, how it asks, and what it says when something fails."""
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

from assay_tool import ROOT, ToolTest, results

FAKE = ROOT / 'tests' / 'verify' / 'fake_cuda'
PLUGIN = '''
#include "gpu/operation.h"
static cudaError_t setup(assay_cuda::run &run) { return gpu_cublaslt.setup(run); }
static cudaError_t launch(assay_cuda::run &run) { return gpu_cublaslt.launch(run); }
extern "C" const assay_plugin *assay_plugin_v1(void)
{
    static const assay_plugin plugin =
        assay_cuda::plugin<launch, setup>("cublaslt", "1", gpu_cublaslt.claim);
    return &plugin;
}
'''
TENSOR = 'fp8_gemm_nt m=5 n=24 k=272 recipe=tensor'
STRIDED = TENSOR + ' a_stride=288 b_stride=304 d_stride=40'
# Two blocks of b, the last one short, and five of K, the last one short.
BLOCKS = 'fp8_gemm_nt m=12 n=136 k=528'
ROWS = BLOCKS + ' recipe=1d1d out=f32'
SCALAR, PER_ROW, PER_BLOCK = 0, 4, 5  # cublasLtMatmulMatrixScale_t
libraries = {}


def setUpModule():
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    path = pathlib.Path(folder.name)
    wrapper = path / 'plugin.cpp'
    wrapper.write_text(PLUGIN, encoding='utf-8')
    libraries['plugin'] = compiled(path / 'plugin.so', wrapper,
                                   ROOT / 'gpu' / 'cublaslt.cu')
    libraries['cublaslt'] = compiled(path / 'fake.so', FAKE / 'fake_cublaslt.cu')


def compiled(library, *sources):
    subprocess.run([*shlex.split(os.environ.get('ASSAY_CXX', 'c++')), '-std=c++17',
                    '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-O1', '-g',
                    '-shared', '-fPIC', '-I', ROOT, '-I', ROOT / 'verify' / 'plugin',
                    '-I', FAKE, '-o', library, '-x', 'c++', *sources, '-ldl'], check=True)
    return library


class CublasLtTest(ToolTest):
    def setUp(self):
        super().setUp()
        for name in 'FAKE_CUBLASLT', 'FAKE_CUBLASLT_VERSION':
            self.addCleanup(os.environ.pop, name, None)

    def ask(self, case, options='', library=None, require=('--require', 'bounded')):
        """Exit status, and the case as it was reported."""
        library = library or libraries['cublaslt']
        candidate = f'plugin:{libraries["plugin"]},library={library}{options}'
        status, cases, _ = results(case, '--candidate', candidate, '--check',
                                   'bitwise,bound', *require)
        return status, cases[0]


class Multiplies(CublasLtTest):
    def check_case(self, case, numerics, asked, options=''):
        with self.subTest(case + options):
            status, found = self.ask(case, options)
            self.assertEqual((status, found['status']), (0, 'ran'), json.dumps(found))
            self.assertIn(found['verdict'], ('equal', 'bounded'))
            self.assertEqual(found['output'].splitlines(), [asked])
            self.assertEqual(found['numerics'], numerics)

    def check_formats(self, case, numerics, fast, modes, options=''):
        for formats in '', ' b_format=e5m2', ' a_format=e5m2':
            self.check_case(case + formats, numerics, f'matmul fast={fast} '
                            f'modes={modes[0]},{modes[1]} reductions=0', options)

    def test_one_scale_an_operand(self):
        one = (SCALAR, SCALAR)
        for case in TENSOR, STRIDED, STRIDED + ' out=f32':
            self.check_formats(case, 'cublaslt-promoted', 0, one)
            self.check_formats(case, 'cublaslt-fast', 1, one, ',fast=1')
        self.check_formats(TENSOR + ' as=cublaslt-fast', 'cublaslt-fast', 1, one)
        self.check_formats(TENSOR + ' as=cublaslt-fast', 'cublaslt-fast', 0, one,
                           ',fast=0')

    def test_block_scales(self):
        for case in BLOCKS, BLOCKS + ' out=f32 a_stride=544 b_stride=560 d_stride=140':
            self.check_formats(case, 'cublaslt-block', 0, (PER_BLOCK, PER_ROW))
        # As `assay identify` found on an H200.
        rows = 'cublaslt-block,scale_form=a-then-b'
        self.check_formats(ROWS, rows, 0, (PER_ROW, PER_ROW))
        self.check_formats(BLOCKS + ' recipe=1d1d unsafe=1', rows, 0, (PER_ROW, PER_ROW))

    def test_exact_data_give_the_model_s_bits(self):
        for case in TENSOR + ' out=f32', BLOCKS + ' out=f32', ROWS:
            status, found = self.ask(case + ' data=exact', require=())
            self.assertEqual((status, found['verdict']), (0, 'equal'), json.dumps(found))

    def test_a_graph_is_captured(self):
        status, found = self.ask(BLOCKS, ',graph=1')
        self.assertEqual(status, 0, json.dumps(found))
        self.assertIn('graph of 1', found['output'])

    def test_split_k_is_allowed_on_request_and_claims_nothing(self):
        # The fake one's bits are not the model's: no failure where none are promised.
        for options, asked, passes in ('', 0, False), (',split_k=1', 7, True):
            status, found = self.ask(TENSOR, options, require=())
            self.assertEqual((found['verdict'], status == 0), ('bounded', passes))
            self.assertIn(f'reductions={asked}\n', found['output'])


class TurnsDown(CublasLtTest):
    def check_refusal(self, case, words, options=''):
        with self.subTest(case + options):
            _, found = self.ask(case, options)
            self.assertEqual(found['status'], 'unsupported', json.dumps(found))
            self.assertIn(words, found['message'])

    def test_what_cublaslt_cannot_do(self):
        for case, words in (
                (ROWS + ' c=1', 'adds no c'),
                ('fp8_gemm_nt m=8 n=16 k=256 recipe=mx', 'not recipe=mx'),
                (TENSOR + ' a_format=e5m2 b_format=e5m2', 'e5m2 by e5m2'),
                ('fp8_gemm_nt m=0 n=16 k=16 recipe=tensor', 'no empty matrices'),
                ('fp8_gemm_nt m=4 n=16 k=0 recipe=tensor', 'no empty matrices'),
                (BLOCKS.replace('m=12', 'm=10'), 'm is 10, and cuBLASLt wants a '
                                                 'multiple of 4'),
                (TENSOR.replace('n=24', 'n=20') + ' unsafe=1', 'n is 20, and cuBLASLt '
                                                               'wants a multiple of 8'),
                (TENSOR.replace('k=272', 'k=280') + ' unsafe=1', 'k is 280'),
                (TENSOR + ' a_stride=280 unsafe=1', 'a_stride is 280'),
                (TENSOR + ' b_stride=280 unsafe=1', 'b_stride is 280'),
                (TENSOR + ' d_stride=28 unsafe=1', 'd_stride is 28'),
                (TENSOR + ' d_stride=26 out=f32 unsafe=1', 'multiple of 4')):
            self.check_refusal(case, words)
        self.check_refusal(BLOCKS, 'recipe=tensor only', ',fast=1')

    def test_n_and_m_need_no_more_than_that(self):
        for case in ('fp8_gemm_nt m=1 n=20 k=16 recipe=tensor out=f32 unsafe=1',
                     'fp8_gemm_nt m=4 n=4 k=16 out=f32 unsafe=1'):
            status, found = self.ask(case)
            self.assertEqual((status, found['status']), (0, 'ran'), json.dumps(found))

    def test_what_the_heuristic_or_an_old_library_cannot_do(self):
        for fault in 'cublasLtMatmulAlgoGetHeuristic 1 15', 'count 1 1':
            os.environ['FAKE_CUBLASLT'] = fault
            self.check_refusal(TENSOR, 'the heuristic of cuBLASLt 130100 has no algo')
        os.environ.update(FAKE_CUBLASLT='', FAKE_CUBLASLT_VERSION='120803')
        self.check_refusal(BLOCKS, 'cuBLASLt 120803 is older than 120900')
        self.assertEqual(self.ask(TENSOR)[0], 0)


class Fails(CublasLtTest):
    def check_failure(self, words, case=TENSOR, options='', library=None):
        status, found = self.ask(case, options, library)
        self.assertEqual((status, found['status']), (3, 'failed'), json.dumps(found))
        self.assertIn(words, found['message'])
        self.assertNotIn('left behind', found.get('output', ''))

    def test_a_library_that_is_none(self):
        self.check_failure('cuBLASLt cannot be opened: /nowhere/libcublasLt.so: ',
                           library='/nowhere/libcublasLt.so')
        self.check_failure('the library has no cublasLtGetVersion; give library=PATH',
                           library=libraries['plugin'])

    def test_options_that_are_none(self):
        for option in 'fast=2', 'fast=', 'fast=yes', 'split_k=10', 'split_k=-1':
            self.check_failure(f'option {option} is neither 0 nor 1',
                               options=',' + option)

    def test_every_status_is_looked_at(self):
        # Once while claiming, once while setting up.
        for function, calls in (('cublasLtCreate', 1), ('cublasLtMatmulDescCreate', 1),
                                ('cublasLtMatmulDescSetAttribute', 7),
                                ('cublasLtMatrixLayoutCreate', 3),
                                ('cublasLtMatmulPreferenceCreate', 1),
                                ('cublasLtMatmulPreferenceSetAttribute', 2),
                                ('cublasLtMatmulAlgoGetHeuristic', 1)):
            for call in range(1, 2 * calls + 1):
                with self.subTest(f'{function} {call}'):
                    os.environ['FAKE_CUBLASLT'] = f'{function} {call} 7'
                    self.check_failure(f'{function}: CUBLAS_STATUS_INVALID_VALUE', BLOCKS)
        os.environ['FAKE_CUBLASLT'] = 'cublasLtMatmul 1 13'
        for options in '', ',graph=1':
            self.check_failure('cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED', BLOCKS,
                               options)


if __name__ == '__main__':
    unittest.main()
