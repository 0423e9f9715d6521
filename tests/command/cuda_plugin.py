# SPDX-License-Identifier: MIT
"""Plugins made with assay_plugin_cuda.h, on a stand-in for the CUDA runtime that needs no
GPU: what the header finds and what it says."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from assay_tool import ROOT, ToolTest, results, run

EXAMPLE = ROOT / 'verify' / 'plugin' / 'example' / 'example_cuda.cu'
FAULTS = ROOT / 'tests' / 'verify' / 'cuda_faults.cu'
BEFORE = 'fp8_gemm_nt m=5 n=24 k=128 recipe=tensor out=f32 seed=1'
MIDDLE = ('fp8_gemm_nt m=7 n=136 k=144 recipe=tensor out=f32 a_stride=176 d_stride=144 '
          'seed=2')
AFTER = 'fp8_gemm_nt m=9 n=16 k=256 recipe=tensor out=f32 data=exact seed=3'
EMPTY = 'fp8_gemm_nt m=0 n=16 k=256 recipe=tensor out=f32 seed=3'
OTHER = 'fp8_gemm_nt m=9 n=16 k=256 seed=3'
# Bytes of the tensors of MIDDLE, row padding included.
BYTES = {'a': 7 * 176, 'b': 136 * 144, 'sfa': 4, 'sfb': 4, 'd': 7 * 144 * 4,
         'sums': 7 * 136 * 4}
KINDS = {'d': 'output', 'sums': 'workspace'}
libraries = {}


def setUpModule():
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    for source in EXAMPLE, FAULTS:
        libraries[source] = compiled(source, pathlib.Path(folder.name))


def compiled(source, folder):
    """The shared library of a .cu file, with its launches in plain C++."""
    text = source.read_text(encoding='utf-8')
    text, count = re.subn(r'(\w+)<<<(.*?)>>>\(', r'fake_launch(\1, \2)(', text,
                          flags=re.DOTALL)
    assert count > 0
    translated, library = folder / f'{source.stem}.cpp', folder / f'{source.stem}.so'
    translated.write_text(text, encoding='utf-8')
    subprocess.run([*shlex.split(os.environ.get('ASSAY_CXX', 'c++')), '-std=c++17',
                    '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-O1', '-g',
                    '-shared', '-fPIC', '-I', ROOT / 'verify' / 'plugin', '-I',
                    ROOT / 'tests' / 'verify' / 'fake_cuda', '-o', library, translated],
                   check=True)
    return library


def faults(options=''):
    return f'plugin:{libraries[FAULTS]}{"," if options else ""}{options}'


class CudaTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.environ.pop, 'FAKE_CUDA', None)

    @staticmethod
    def short(cases):
        return json.dumps([[case['status'], case['verdict'], case.get('message', '')]
                           for case in cases])

    def middle(self, options, status, fault=None):
        """The middle one of three cases; the others pass."""
        if fault:
            os.environ['FAKE_CUDA'] = fault
        found, cases, _ = results(BEFORE, MIDDLE, AFTER, '--candidate', faults(options),
                                  '--check', 'bitwise,bound')
        self.assertEqual([case['passed'] for case in cases], [True, found == 0, True],
                         self.short(cases))
        self.assertEqual(cases[1]['status'], status, self.short(cases))
        return cases[1]


class Honest(CudaTest):
    def check_honest(self, candidate):
        status, cases, _ = results(BEFORE, MIDDLE, AFTER, BEFORE, '--candidate',
                                   candidate)
        self.assertEqual(status, 0, self.short(cases))
        self.assertEqual([case['verdict'] for case in cases],
                         ['bounded', 'bounded', 'equal', 'bounded'])
        return cases

    def test_the_page_s_example_is_the_file_and_passes(self):
        page = (ROOT / 'verify' / 'plugin' / 'plugin.md').read_text(encoding='utf-8')
        shown = re.search(r'```cuda\n(.*?)```', page, re.DOTALL).group(1)
        source = EXAMPLE.read_text(encoding='utf-8')
        self.assertEqual(shown, source[source.index('#include'):])
        for case in self.check_honest(f'plugin:{libraries[EXAMPLE]}'):
            self.assertNotIn('output', case)

    def test_two_kernels_and_a_workspace_pass_and_leave_nothing(self):
        for options in '', 'guard=0', 'guard=1', 'guard=100000', 'inputs=0':
            for case in self.check_honest(faults(options)):
                self.assertNotIn('output', case)

    def test_a_case_without_rows_or_of_another_kind_is_no_failure(self):
        example = f'plugin:{libraries[EXAMPLE]}'
        _, cases, summary = results(EMPTY, OTHER, BEFORE, '--candidate', example)
        self.assertEqual([case['status'] for case in cases],
                         ['ran', 'unsupported', 'ran'])
        self.assertEqual((summary['broken'], summary['failed']), (0, 0))
        self.assertIn('one scale and f32 output only', cases[1]['message'])

    def test_a_graph_is_captured_once_and_replayed(self):
        for case in self.check_honest(faults('graph=1')):
            self.assertEqual(set(case['output'].splitlines()), {'graph of 2'})
        done = run('bench', BEFORE, '--candidate', faults('graph=1'), '--json', '-',
                   '--repeats', 1)
        row = json.loads(done.stdout.splitlines()[1])
        self.assertGreater(row['launches'], 1)
        self.assertGreater(row['seconds'], 0)

    def test_the_cache_is_flushed_before_each_launch(self):
        for options in 'cold=1', 'cold=1,graph=1':
            for case in self.check_honest(faults(options)):
                lines = case['output'].splitlines()
                self.assertEqual(lines.count('flush of 4194304 bytes'),
                                 len(lines) / (1 + options.count('graph')))
        cold, = self.figures('cold=1')
        warm, = self.figures('')
        for row in cold, warm:
            self.assertTrue(1 < row['launches'] <= 10000)
            # No host does 15360 additions, each of which waits for the last, so fast.
            self.assertGreater(row['seconds'], 2e-6)
            self.assertAlmostEqual(row['rate'] * row['seconds'] / (5 * 24 * 128), 1)

    def figures(self, options):
        done = run('bench', BEFORE, '--candidate', faults(options), '--json', '-')
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()[1:-1]]


class Found(CudaTest):
    def test_a_write_beside_a_tensor_names_it_and_the_side(self):
        for name in BYTES:
            for at, words in (('-1', 'before the beginning of {}: 1 bytes, the nearest '
                                     'at a distance of 0'),
                              ('-4096', 'before the beginning of {}: 1 bytes, the '
                                        'nearest at a distance of 4095'),
                              ('end+0', 'behind the end of {}: 1 bytes, the nearest at '
                                        'a distance of 0'),
                              ('end+4095', 'behind the end of {}: 1 bytes, the nearest '
                                           'at a distance of 4095')):
                with self.subTest(f'{name} {at}'):
                    case = self.middle(f'poke={name},at={at},rows=7', 'failed')
                    self.assertIn(words.format(f'{KINDS.get(name, "input")} {name}'),
                                  case['message'])
                    self.assertEqual(case['outputs'], [])

    def test_other_widths_of_the_bands(self):
        case = self.middle('poke=d,at=end+99999,rows=7,guard=100000', 'failed')
        self.assertIn('a distance of 99999', case['message'])
        case = self.middle('poke=b,at=-256,rows=7,guard=1', 'failed')
        self.assertIn('a distance of 255', case['message'])

    def test_a_changed_input_is_named(self):
        for name in 'a', 'b', 'sfa', 'sfb':
            for at in 0, BYTES[name] - 1:
                case = self.middle(f'poke={name},at={at},rows=7', 'failed')
                self.assertIn(f'changed input {name}: 1 of {BYTES[name]} bytes, the '
                              f'first at byte {at}', case['message'])
        case = self.middle('poke=a,at=5,rows=7,inputs=0', 'ran')
        self.assertEqual(case['verdict'], 'bounded')

    def test_large_inputs_are_compared_to_the_last_byte(self):
        large = 'fp8_gemm_nt m=1 n=9000 k=2048 recipe=tensor out=f32 seed=1'
        size = 9000 * 2048
        self.assertGreater(size, 2 ** 24)
        status, cases, _ = results(large, '--candidate',
                                   faults(f'poke=b,at={size - 1}'), '--check', 'bound')
        self.assertEqual((status, cases[0]['status']), (3, 'failed'))
        self.assertIn(f'changed input b: 1 of {size} bytes, the first at byte {size - 1}',
                      cases[0]['message'])

    def test_a_changed_output_or_workspace_is_the_verdict_s_business(self):
        case = self.middle('poke=sums,at=3,rows=7', 'ran')
        self.assertEqual(case['verdict'], 'bounded')
        case = self.middle('poke=d,at=3,rows=7', 'ran')
        self.assertEqual(case['outputs'][0]['outside'], 1)

    def test_unwritten_rows_keep_their_poison(self):
        case = self.middle('fail=unwritten,rows=7', 'ran')
        self.assertEqual((case['verdict'], case['outputs'][0]['outside']),
                         ('outside', 136))

    def test_what_the_plugin_s_functions_report(self):
        for what, status, words in (
                ('memory', 'out of memory', 'setting up: out of memory '
                                            '(cudaErrorMemoryAllocation)'),
                ('no-memory', 'out of memory', 'no host memory is left'),
                ('throw', 'failed', 'an exception: no plan for that shape'),
                ('blocks', 'failed', 'launching: fake error '
                                     '(cudaErrorInvalidValue)')):
            for graph in '', ',graph=1':
                with self.subTest(what + graph):
                    case = self.middle(f'fail={what},rows=7{graph}', status)
                    wanted = words.replace('launching', 'capturing a graph') \
                        if graph else words
                    self.assertIn(wanted, case['message'])

    def test_a_function_s_own_sentence_is_all_that_is_said(self):
        for what, sentence in (('setup', f'sums of {BYTES["sums"]} bytes are too large'),
                               ('launch', 'no plan for 136 columns')):
            for options in '', ',graph=1', ',cold=1':
                with self.subTest(what + options):
                    case = self.middle(f'fail=refuse-{what},rows=7{options}', 'failed')
                    self.assertTrue(case['message'].endswith(sentence), case['message'])
                    self.assertNotIn('cudaError', case['message'])

    def test_options_that_are_none(self):
        for option, most in (('guard=x', 2 ** 30), ('guard=', 2 ** 30),
                             ('guard=-1', 2 ** 30), ('guard=99999999999999', 2 ** 30),
                             ('graph=2', 1), ('cold=yes', 1), ('inputs=1 ', 1)):
            status, cases, _ = results(BEFORE, '--candidate', faults(option))
            self.assertEqual((status, cases[0]['status']), (3, 'failed'), option)
            self.assertIn(f'option {option} is no number from 0 to {most}',
                          cases[0]['message'])


class Errors(CudaTest):
    """The runtime fails at the first case's last call or later, in the middle case."""

    def check_error(self, fault, options, status, words):
        with self.subTest(fault + options):
            case = self.middle(options, status, fault)
            self.assertIn(words, case['message'])

    def test_errors_name_what_was_being_done(self):
        for fault, options, status, words in (
                ('cudaStreamCreate 2 100', '', 'failed', 'opening a stream: fake error '
                                                         '(cudaErrorNoDevice)'),
                ('cudaEventCreate 4 2', '', 'out of memory', 'opening a stream'),
                ('cudaMalloc 7 2', '', 'out of memory', 'uploading a (1232 bytes)'),
                ('cudaMalloc 11 2', '', 'out of memory', 'uploading d (4032 bytes)'),
                ('cudaMalloc 12 2', '', 'out of memory', 'setting up'),
                ('cudaMemset 15 1', '', 'failed', 'uploading sfa (4 bytes)'),
                ('cudaMemset 18 1', '', 'failed', 'uploading b (19584 bytes)'),
                ('cudaStreamBeginCapture 2 900', 'graph=1', 'failed',
                 'capturing a graph'),
                ('cudaStreamEndCapture 2 900', 'graph=1', 'failed', 'capturing a graph'),
                ('cudaGraphInstantiateWithFlags 2 900', 'graph=1', 'failed',
                 'capturing a graph'),
                ('cudaGraphLaunch 2 719', 'graph=1', 'failed', 'launching'),
                ('cudaGetDevice 2 100', 'cold=1', 'failed', 'launching'),
                ('cudaDeviceGetAttribute 2 1', 'cold=1', 'failed', 'launching'),
                ('cudaMemsetAsync 2 1', 'cold=1', 'failed', 'launching'),
                ('cudaEventRecord 3 1', '', 'failed', 'launching'),
                ('cudaEventRecord 4 1', '', 'failed', 'launching'),
                ('cudaEventElapsedTime 2 1', '', 'failed', 'launching')):
            self.check_error(fault, options, status, words)

    def test_every_copy_is_checked(self):
        # Of a case: 5 up; 2 bands of 6 buffers; 4 inputs and 1 output down.
        per_case = 5 + 12 + 5
        for call in range(per_case):
            words = ('uploading ' + 'a sfa b sfb d'.split()[call] if call < 5 else
                     'reading guard bytes' if call < 17 else
                     'reading an input' if call < 21 else 'fetching an output')
            self.check_error(f'cudaMemcpy {per_case + call + 1} 1', '', 'failed',
                             words + (' (' if call < 5 else ': fake error ('))

    def test_a_kernel_s_error_fails_and_a_device_s_is_a_lost_device(self):
        for error, name, status in (
                (700, 'IllegalAddress', 'failed'), (719, 'LaunchFailure', 'failed'),
                (46, 'DevicesUnavailable', 'device lost'),
                (214, 'ECCUncorrectable', 'device lost'),
                (220, 'NvlinkUncorrectable', 'device lost'),
                (999, 'Unknown', 'device lost'),
                (2, 'MemoryAllocation', 'out of memory')):
            self.check_error(f'kernel 3 {error}', '', status, f'(cudaError{name})')
        for kernel in 3, 4:
            for options in '', 'graph=1', 'cold=1':
                self.check_error(f'kernel {kernel} 700', options, 'failed',
                                 'launching: fake error (cudaErrorIllegalAddress)')


if __name__ == '__main__':
    unittest.main()
