# SPDX-License-Identifier: MIT
"""`--candidate plugin:FILE.so`: honest and broken plugins, as a user meets them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

from assay_tool import ROOT, TOOL, ToolTest, results, run

PLUGINS = pathlib.Path(os.environ.get(
    'ASSAY_PLUGINS', pathlib.Path(TOOL).parent / 'plugin'))
BEFORE = 'fp8_gemm_nt m=70 n=72 k=400 seed=1'
BROKEN = 'fp8_gemm_nt m=130 n=136 k=256 a_stride=272 seed=2'
AFTER = 'fp8_gemm_nt m=70 n=72 k=400 out=f32 seed=3'
SCALED_ONCE = 'fp8_gemm_nt m=64 n=64 k=256 recipe=tensor out=f32 seed=4'


def candidate(mode=None, plugin='example'):
    text = f'plugin:{PLUGINS / plugin}.so'
    return text if mode is None else f'{text},mode={mode},rows=130'


class Plugin(ToolTest):
    def check_middle(self, options, mode, exit_status, plugin='example'):
        """The middle one of three cases; the others must pass."""
        start = time.monotonic()
        status, cases, summary = results(BEFORE, BROKEN, AFTER, '--candidate',
                                         candidate(mode, plugin), *options)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(status, exit_status, cases)
        self.assertEqual([case['passed'] for case in cases],
                         [True, exit_status == 0, True])
        self.assertEqual([cases[0]['verdict'], cases[2]['verdict']],
                         ['bounded', 'bounded'])
        self.assertEqual(summary['exit_code'], exit_status)
        return cases[1]

    def test_the_honest_example_is_bounded(self):
        status, cases, _ = results(BEFORE, BROKEN, AFTER, '--candidate', candidate())
        self.assertEqual(status, 0)
        for case in cases:
            self.assertEqual((case['status'], case['verdict']), ('ran', 'bounded'))
            self.assertTrue(case['passed'])
            self.assertGreater(case['outputs'][0]['differ'], 0)
            self.assertNotIn('warning', case)
            self.assertNotIn('output', case)

    def test_exact_data_are_equal(self):
        status, cases, _ = results('fp8_gemm_nt m=70 n=72 k=400 data=exact',
                                   '--candidate', candidate(), '--require', 'equal')
        self.assertEqual((status, cases[0]['verdict']), (0, 'equal'))

    def test_what_stops_in_the_middle_costs_one_case(self):
        for mode, status, sentence in (
                ('crash', 'crashed', r' \(launch\)'),
                ('abort', 'crashed', r'killed by signal 6 \(SIGABRT\) \(launch\)'),
                ('exit', 'crashed', r'exited with status 0 \(launch\)'),
                ('write-input', 'crashed', r' \(launch\)'),
                ('crash-in-claim', 'crashed', r' \(claim\)'),
                ('past-the-end', 'crashed', 'wrote outside its tensors'),
                ('break-protocol', 'crashed', 'wrote to descriptor 3'),
                ('fail', 'failed', 'the launch gave error 700')):
            with self.subTest(mode):
                case = self.check_middle([], mode, 3)
                self.assertEqual(case['status'], status)
                self.assertRegex(case['message'], sentence)
                self.assertEqual(case['outputs'], [])

    def test_what_does_not_stop_is_stopped(self):
        for mode in 'hang', 'endless-output':
            with self.subTest(mode):
                case = self.check_middle(['--timeout', '1'], mode, 3)
                self.assertEqual(case['status'], 'hung')
                self.assertIn('within 1 s', case['message'])

    def test_memory_is_limited(self):
        for plugin in 'example', 'example_fast':
            with self.subTest(plugin):
                case = self.check_middle(['--memory-limit', '256M'], 'out-of-memory', 3,
                                         plugin)
                self.assertEqual(case['status'], 'out of memory')

    def test_wrong_outputs_are_outside(self):
        case = self.check_middle([], 'unwritten', 1)
        self.assertEqual((case['verdict'], case['outputs'][0]['outside']),
                         ('outside', 136))
        case = self.check_middle([], 'reads-padding', 1)
        self.assertEqual((case['verdict'], case['outputs'][0]['outside']),
                         ('outside', 130 * 136))
        case = self.check_middle([], 'wrong-tile', 1)
        self.assertEqual(case['verdict'], 'outside')
        output = case['outputs'][0]
        self.assertTrue(0 < output['outside'] <= 64 * 64)
        self.assertTrue(64 <= output['bound_worst']['index'][0] < 128)
        self.assertTrue(output['bound_worst']['index'][1] < 64)

    def test_one_run_in_ten_is_wrong(self):
        lines = [f'fp8_gemm_nt m=8 n=8 k=256 seed={seed}' for seed in range(20)]
        status, cases, _ = results(
            *lines, '--candidate', f'plugin:{PLUGINS}/example.so,mode=one-in-ten',
            '--check', 'bitwise,bound')
        self.assertEqual(status, 1)
        self.assertEqual([at for at in range(20) if not cases[at]['passed']], [9, 19])

    def test_a_claim_is_held_against_the_plugin(self):
        case = self.check_middle([], 'false-claim', 1)
        self.assertEqual((case['status'], case['verdict']), ('ran', 'bounded'))
        self.assertEqual(case['numerics'], 'deepgemm-1d2d')
        case = self.check_middle([], 'unknown-claim', 2)
        self.assertEqual(case['status'], 'refused')
        self.assertIn("'no-such-numerics'", case['message'])

    def test_noise_changes_nothing(self):
        case = self.check_middle([], 'noise', 0)
        self.assertEqual(case['output'], 'launching 1 x 1 blocks\n{"status":3}\n')

    def test_a_changed_floating_point_mode_is_a_warning(self):
        status, cases, _ = results(BEFORE, '--candidate',
                                   candidate(plugin='example_fast'))
        self.assertEqual((status, cases[0]['verdict']), (0, 'bounded'))
        built_by_gcc = b'GCC' in pathlib.Path(PLUGINS / 'example_fast.so').read_bytes()
        if built_by_gcc:
            self.assertIn('floating-point mode', cases[0]['warning'])
            done = run('verify', BEFORE, '--candidate', candidate(plugin='example_fast'))
            self.assertIn('warning: plugin example 1 changed the floating-point mode',
                          done.stdout)

    def test_a_case_it_does_not_do_is_no_failure(self):
        status, cases, _ = results(BEFORE, SCALED_ONCE, '--candidate', candidate())
        self.assertEqual(status, 0)
        self.assertEqual(cases[1]['status'], 'unsupported')
        self.assertIn('recipe=1d2d only', cases[1]['message'])
        self.assertEqual(results(SCALED_ONCE, '--candidate', candidate())[0], 5)

    def test_what_was_printed_is_in_the_text_and_in_junit(self):
        report = self.folder / 'report.xml'
        done = run('verify', BROKEN, '--candidate', candidate('endless-output'),
                   '--timeout', '0.5', '--junit', report)
        self.assertEqual(done.returncode, 3)
        self.assertIn('printed (the first 4096 of 1048576 bytes):\n'
                      '    | and on and on\n', done.stdout)
        self.assertIn('| and on and on', report.read_text(encoding='utf-8'))
        done = run('verify', BROKEN, '--candidate', candidate('crash'))
        self.assertIn('  printed:\n    | about to crash\n', done.stdout)

    def test_a_plugin_can_be_recorded(self):
        path = self.record(BEFORE, candidate())
        status, cases, _ = results('--recorded', path, '--require', 'bounded')
        self.assertEqual((status, cases[0]['verdict']), (0, 'bounded'))


class Refusals(ToolTest):
    def check_refusal(self, arguments, sentence):
        done = run('verify', BEFORE, *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, '')
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_what_is_no_plugin(self):
        text = self.folder / 'text.so'
        text.write_text('no library', encoding='utf-8')
        for path, sentence in (
                ('', 'write plugin:FILE.so'),
                (',mode=x', 'write plugin:FILE.so'),
                (self.folder / 'none.so', 'No such file or directory'),
                (self.folder, 'cannot be loaded as a plugin'),
                (text, 'cannot be loaded as a plugin'),
                (PLUGINS / 'example_old.so', 'made for version 0 of the interface')):
            with self.subTest(path):
                self.check_refusal(['--candidate', f'plugin:{path}'], sentence)

    def test_limits_that_are_none(self):
        for option, values in (
                ('--timeout', ('0', '-1', 'x', '', '1e3', '99999999999999999999')),
                ('--memory-limit', ('0', '-1', 'M', '', '1.5G', '4T', '9999999999G'))):
            for value in values:
                with self.subTest(f'{option} {value}'):
                    self.check_refusal([f'{option}={value}'], f'{option} {value} is no ')

    def test_the_worker_is_not_for_people(self):
        done = run('worker', 'x', 'y', '0')
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn('starts by itself', done.stderr)
        self.assertNotIn('worker', run('--help').stdout)


class Page(ToolTest):
    def test_the_plugin_of_the_page_compiles_and_runs(self):
        page = (ROOT / 'verify' / 'plugin' / 'plugin.md').read_text(encoding='utf-8')
        source = re.search(r'```c\n(.*?)```', page, re.DOTALL).group(1)
        path, library = self.folder / 'mine.c', self.folder / 'mine.so'
        path.write_text(source, encoding='utf-8')
        for compiler, language in (('cc', 'c11'), ('c++', 'c++11')):
            if not shutil.which(compiler):
                continue
            done = subprocess.run(
                [compiler, '-x', 'c' if compiler == 'cc' else 'c++', f'-std={language}',
                 '-Wall', '-Wextra', '-Werror', '-O2', '-shared', '-fPIC', '-I',
                 ROOT / 'verify' / 'plugin', '-o', library, path],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            status, cases, _ = results(
                'fp8_gemm_nt m=64 n=64 k=512 recipe=tensor out=f32 seed=1', BEFORE,
                '--candidate', f'plugin:{library}')
            self.assertEqual(status, 0, json.dumps(cases)[:2000])
            self.assertEqual(cases[0]['verdict'], 'bounded')
            self.assertEqual(cases[1]['status'], 'unsupported')


if __name__ == '__main__':
    unittest.main()
