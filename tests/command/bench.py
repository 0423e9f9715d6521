# SPDX-License-Identifier: MIT
"""`assay bench` names what it measured, and its figures fit together. How large they are
is no test: that depends on the machine and on what else runs there."""
import json
import math
import os
import unittest

from assay_tool import ToolTest, run

CASE = 'fp8_gemm_nt m=64 n=72 k=256'
# Operand formats of the unit.
PAIRS = [('e4m3', 'e4m3'), ('e5m2', 'e5m2'), ('e4m3', 'e5m2'), ('e5m2', 'e4m3'),
         ('bf16', 'bf16'), ('f16', 'f16'), ('tf32', 'tf32')]


class Bench(ToolTest):
    def figures(self, *arguments, expected=0, **options):
        """The objects of one run between header and summary."""
        done = run('bench', *arguments, '--json', '-', '--repeats', 2, **options)
        self.assertEqual(done.returncode, expected, done.stderr)
        header, *rows, summary = map(json.loads, done.stdout.splitlines())
        self.assertEqual((header['type'], header['command']), ('header', 'bench'))
        self.assertEqual(summary['type'], 'summary')
        self.assertEqual((summary['cases'], summary['exit_code']), (len(rows), expected))
        for row in rows:
            self.assertEqual(row['type'], 'bench')
            for key in ('op', 'case', 'candidate', 'unit'):
                self.assertTrue(row[key], key)
            for key in ('threads', 'seconds', 'rate'):
                self.assertGreater(row[key], 0, key)
                self.assertTrue(math.isfinite(row[key]), key)
            self.assertTrue(row['case'].startswith(row['op'] + ' '))
        return rows

    def test_a_case_is_measured_by_its_own_cost(self):
        for candidate in ('model', 'oracle', 'model:promote_k=64'):
            row, = self.figures(CASE, '--candidate', candidate)
            self.assertEqual((row['op'], row['case'], row['candidate'], row['unit']),
                             ('fp8_gemm_nt', CASE + ' seed=0', candidate,
                              'multiply-adds/s'))
            self.assertAlmostEqual(row['rate'] * row['seconds'] / (64 * 72 * 256), 1)
            self.assertNotIn('ratio_one_core', row)

    def test_cases_of_a_suite_come_in_order(self):
        suite = f'# two\n{CASE} seed=3\n{CASE} seed=2\n'
        rows = self.figures('--suite', '-', text=suite)
        self.assertEqual([row['case'] for row in rows],
                         [CASE + ' seed=3', CASE + ' seed=2'])

    def test_an_operation_without_cases_gets_the_same_ones_every_time(self):
        rows = self.figures('--op', 'fp8_gemm_nt')
        self.assertEqual({row['op'] for row in rows}, {'fp8_gemm_nt'})
        again = self.figures('--op', 'fp8_gemm_nt', '--candidate', 'oracle')
        self.assertEqual([row['case'] for row in rows], [row['case'] for row in again])
        self.assertEqual(len(set(row['case'] for row in rows)), len(rows))

    def test_the_unit_is_measured_beside_sgemm(self):
        two_threads = {**os.environ, 'OMP_NUM_THREADS': '2'}
        sgemm, *rows = self.figures('--op', 'wgmma', env=two_threads)
        self.assertEqual((sgemm['op'], sgemm['candidate'], sgemm['threads']),
                         ('sgemm', 'openblas', 1))
        self.assertAlmostEqual(sgemm['rate'] * sgemm['seconds'] / 2 ** 30, 1)
        names = [f'wgmma a_format={a} b_format={b} m=64 n=64 k=1024' for a, b in PAIRS]
        self.assertEqual([row['case'] for row in rows[::2]], names)
        self.assertEqual([row['case'] for row in rows[1::2]], names)
        for row in rows:
            self.assertAlmostEqual(row['rate'] * row['seconds'] / (64 * 64 * 1024), 1)
        for one, all_cores in zip(rows[::2], rows[1::2]):
            self.assertEqual((one['threads'], all_cores['threads']), (1, 2))
            self.assertAlmostEqual(one['ratio_one_core'] * sgemm['rate'] / one['rate'], 1)
            self.assertNotIn('ratio_one_core', all_cores)

    def test_text_goes_to_stdout_unless_json_does(self):
        path = self.folder / 'bench.json'
        done = run('bench', CASE, '--json', path)
        self.assertEqual(done.returncode, 0, done.stderr)
        line, = done.stdout.splitlines()
        self.assertIn('multiply-adds/s', line)
        self.assertTrue(line.endswith('model  ' + CASE + ' seed=0'))
        self.assertEqual(len(path.read_text().splitlines()), 3)
        self.assertEqual(list(self.folder.iterdir()), [path])

    def test_nothing_selected_is_no_success(self):
        self.assertEqual(self.figures('--suite', '-', text='# no\n', expected=5), [])
        self.assertEqual(self.figures(CASE, '--op', 'wgmma', expected=5), [])

    def test_mistakes_are_named_and_leave_nothing(self):
        path = self.folder / 'bench.json'
        for arguments, word in [
                (['--op', 'fp8_gemm_tn'], 'fp8_gemm_nt'),
                (['--op', 'wgmma', '--candidate', 'oracle'], '--candidate model'),
                ([CASE, '--candidate', 'modell'], 'model'),
                ([CASE, '--candidate', 'model:nonsense'], 'nonsense'),
                ([CASE, '--repeats', '0'], '--repeats 0'),
                ([CASE, '--repeats', 'x'], '--repeats x'),
                ([CASE + ' n=9'], 'n'),
                (['--suite', '/no/such/suite'], '/no/such/suite')]:
            done = run('bench', *arguments, '--json', path)
            self.assertEqual((done.returncode, done.stdout), (2, ''), arguments)
            self.assertIn(word, done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [], arguments)
        done = run('bench', CASE, '--json', self.folder / 'no' / 'bench.json')
        self.assertEqual((done.returncode, done.stdout), (2, ''))


if __name__ == '__main__':
    unittest.main()
