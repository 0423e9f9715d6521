# SPDX-License-Identifier: MIT
"""Checks that run the candidate again, and other backends as reference, on the command
line."""
import os
import pathlib
import unittest

from assay_tool import TOOL, ToolTest, results, run

PLUGINS = pathlib.Path(os.environ.get(
    'ASSAY_PLUGINS', pathlib.Path(TOOL).parent / 'plugin'))
CASE = 'fp8_gemm_nt m=66 n=72 k=256 a_stride=272 seed=2'
SCALED_ONCE = 'fp8_gemm_nt m=64 n=64 k=256 recipe=tensor out=f32 seed=4'
AGAIN = ['repeat', 'poison', 'batch', 'properties']


def example(mode='honest'):
    return f'plugin:{PLUGINS}/example.so,mode={mode}'


def failed_checks(case):
    return {finding['check'] for finding in case.get('findings', [])
            if finding['failure']}


class Checks(ToolTest):
    def test_the_honest_example_passes_all_checks(self):
        for line in CASE, 'fp8_gemm_nt m=70 n=72 k=400 out=f32 data=exact seed=3':
            status, cases, _ = results(line, '--candidate', example())
            self.assertEqual((status, cases[0].get('findings')), (0, None))
            self.assertLessEqual(set(AGAIN), set(cases[0]['checks']))
            self.assertGreater(cases[0]['candidate_runs'], 20)

    def test_each_broken_example_fails_its_check_in_one_case(self):
        for mode, checks in (
                ('one-in-ten', ['repeat']),
                ('adds-up', ['repeat']),
                ('leaks-padding', ['poison']),
                ('unwritten', ['poison']),
                ('looks-around', ['batch', 'properties'])):
            with self.subTest(mode):
                status, cases, _ = results(CASE, '--candidate', example(mode))
                self.assertEqual((status, cases[0]['verdict']), (1, 'outside'))
                self.assertTrue(failed_checks(cases[0]) & set(checks), cases[0])
                if mode == 'unwritten':
                    continue
                # Nothing else would have seen it.
                self.assertEqual(cases[0]['outputs'][0]['outside'], 0)
                others = [name for name in AGAIN if name not in failed_checks(cases[0])]
                if mode == 'one-in-ten':
                    others = []  # by chance they may see it as well
                status, cases, _ = results(CASE, '--candidate', example(mode), '--check',
                                           ','.join(['bitwise', 'bound', *others]))
                self.assertEqual((status, cases[0]['verdict']), (0, 'bounded'), mode)

    def test_every_case_of_what_fails_one_time_in_ten_fails(self):
        lines = [f'fp8_gemm_nt m=8 n=8 k=256 seed={seed}' for seed in range(20)]
        _, cases, summary = results(*lines, '--candidate', example('one-in-ten'))
        self.assertEqual((summary['failed'], summary['passed']), (20, 0))
        self.assertTrue(all('repeat' in failed_checks(case) for case in cases))

    def test_findings_say_what_was_seen(self):
        _, cases, _ = results(CASE, '--candidate', example('unwritten'))
        finding = [row for row in cases[0]['findings'] if row['check'] == 'poison'][0]
        self.assertEqual(finding['message'], '72 defined elements were never written')
        self.assertEqual(finding['elements'], 72)
        self.assertEqual(finding['index'], [65, 0])

    def test_a_trusted_candidate_runs_again_only_when_asked_to(self):
        _, cases, _ = results(CASE)
        self.assertEqual(cases[0]['candidate_runs'], 1)
        self.assertFalse(set(AGAIN) & set(cases[0]['checks']))
        _, cases, _ = results(CASE, '--check', 'all')
        self.assertGreater(cases[0]['candidate_runs'], 20)
        _, cases, _ = results(CASE, '--check', 'bound,poison,bound')
        self.assertEqual(cases[0]['checks'], ['bound', 'poison'])
        self.assertEqual(cases[0]['candidate_runs'], 3)

    def test_recorded_outputs_cannot_run_again(self):
        path = self.record(CASE)
        status, cases, _ = results('--recorded', path, '--check', 'all')
        self.assertEqual(status, 0)
        self.assertEqual(cases[0]['checks'], ['bitwise', 'bound'])

    def test_repeats_are_counted(self):
        for repeats in 2, 3, 25:
            status, cases, _ = results(CASE, '--check', 'repeat,bound', '--repeats',
                                       repeats)
            self.assertEqual((status, cases[0]['candidate_runs']),
                             (0, 2 * repeats - (2 if repeats > 2 else 1)))

    def test_the_model_passes_all_checks_of_every_operation(self):
        done = run('list', 'operations')
        operations = [line.split()[0] for line in done.stdout.splitlines()
                      if not line.startswith(' ')]
        self.assertGreater(len(operations), 15)
        lines = ''.join(run('list', 'cases', '--op', operation, '--count', 2,
                            '--multiply-adds', 20000).stdout for operation in operations)
        status, cases, _ = results('--suite', '-', '--check', 'all',
                                   '--max-indecisive', 99, text=lines)
        self.assertEqual(len(cases), 2 * len(operations))
        for case in cases:
            self.assertEqual((case['status'], case.get('findings')), ('ran', None),
                             case['case'])
        self.assertEqual(status, 0)


class References(ToolTest):
    def test_two_backends_are_compared(self):
        for mode, options, expected, passes in (
                ('honest', [], 'equal', True),
                ('wrong-tile', [], 'bounded', False),
                ('wrong-tile', ['--require', 'bounded'], 'bounded', True)):
            with self.subTest(f'{mode} {options}'):
                status, cases, _ = results(
                    CASE, '--candidate', example(), '--reference',
                    f'oracle,{example(mode)}', *options)
                self.assertEqual((status, cases[0]['verdict']),
                                 (int(not passes), expected))
                self.assertEqual(cases[0]['outputs'][0]['outside'], 0)
                self.assertEqual(cases[0]['outputs'][0]['differ'] > 0, mode != 'honest')
                self.assertEqual(cases[0]['reference'], example(mode))

    def test_without_the_oracle_only_bits_are_compared(self):
        status, cases, _ = results(CASE, '--candidate', example('wrong-tile'),
                                   '--reference', example('wrong-tile'), '--check',
                                   'bitwise,bound')
        self.assertEqual((status, cases[0]['verdict']), (0, 'equal'))
        self.assertEqual(cases[0]['checks'], ['bitwise'])

    def test_recorded_outputs_can_be_the_reference(self):
        path = self.record(CASE)
        status, cases, _ = results(CASE, '--reference', f'oracle,recorded:{path}')
        self.assertEqual((status, cases[0]['verdict']), (0, 'equal'))
        status, cases, _ = results(CASE, '--candidate', example(), '--reference',
                                   f'oracle,recorded:{path}')
        self.assertEqual((status, cases[0]['verdict']), (1, 'bounded'))

    def test_what_the_reference_does_not_do_is_unsupported(self):
        status, cases, _ = results(SCALED_ONCE, '--reference', example())
        self.assertEqual((status, cases[0]['status']), (5, 'unsupported'))
        self.assertIn(f'reference {example()} does not do this case',
                      cases[0]['message'])
        self.assertIn('takes recipe=1d2d only', cases[0]['message'])

    def test_a_broken_reference_breaks_the_case(self):
        status, cases, _ = results(CASE, '--reference', example('crash'))
        self.assertEqual((status, cases[0]['status']), (3, 'crashed'))
        self.assertIn('reference plugin:', cases[0]['message'])

    def test_limits_hold_for_the_reference(self):
        status, cases, _ = results(CASE, '--reference', example('hang'), '--timeout', '1')
        self.assertEqual((status, cases[0]['status']), (3, 'hung'))


class Refusals(ToolTest):
    def test_options_that_make_no_sense(self):
        for options, sentence in (
                (['--repeats', '1'], '--repeats 1 is no count of runs; use 2 to 1000'),
                (['--repeats', '1001'], 'use 2 to 1000'),
                (['--repeats', '2.5'], 'use 2 to 1000'),
                (['--repeats='], 'use 2 to 1000'),
                (['--check', 'repaet'], "did you mean 'repeat'?"),
                (['--check', 'bound,'], "names '', which is no check"),
                (['--reference', 'modle'], "names 'modle'; did you mean 'model'?"),
                (['--reference', 'plugni:x.so'], "did you mean 'plugin'?"),
                (['--reference', ''], "--reference names ''"),
                (['--reference', 'model,' + example()], 'names model and plugin:'),
                (['--reference', 'plugin:/nowhere/x.so'], 'cannot be opened'),
                (['--reference', 'oracle,recorded'], 'write recorded:FILE')):
            with self.subTest(options):
                done = run('verify', CASE, *options)
                self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(sentence, done.stderr)


if __name__ == '__main__':
    unittest.main()
