# SPDX-License-Identifier: MIT
"""Planted faults on the command line: what the selftest says of them."""
import json
import os
import tempfile
import unittest

from assay_tool import ToolTest, results, run

# Accumulators that are coarser than the class of the numerics allows.
COARSE = ['promote-512', 'promote-never', 'align-12', 'result-12', 'sum-of-13-bits',
          'sum-in-bf16']
FEW = ['c-twice', 'promote-separately', 'one-run-in-ten', 'writes-past-end',
       'bound-too-wide']


def named(*faults):
    return [word for fault in faults for word in ('--fault', fault)]


def objects(*arguments):
    """Exit status and the objects of `assay selftest ... --json -` by their type."""
    done = run('selftest', *arguments, '--json', '-')
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {kind: [line for line in lines if line['type'] == kind]
                             for kind in ('header', 'fault', 'selftest', 'summary')}


class Selftest(ToolTest):
    def test_faults_of_all_kinds_are_caught(self):
        status, found = objects(*named(*FEW))
        self.assertEqual(status, 0)
        self.assertEqual([fault['fault'] for fault in found['fault']], FEW)
        self.assertEqual([fault['kind'] for fault in found['fault']],
                         ['function', 'rounding', 'execution', 'execution', 'verifier'])
        self.assertTrue(all(fault['caught'] for fault in found['fault']))
        totals = found['selftest'][0]
        self.assertEqual((totals['faults'], totals['caught'], totals['skipped'],
                          totals['false_alarms']), (5, 5, 0, 0))
        self.assertEqual((totals['function_and_execution'],
                          totals['found_without_bitwise']), (3, 3))
        self.assertEqual(found['summary'][0]['exit_code'], 0)
        checks = {fault['fault']: fault['checks'] for fault in found['fault']}
        self.assertEqual(checks['c-twice']['bound']['cases'], 1)
        self.assertEqual(checks['one-run-in-ten']['repeat']['cases'], 1)
        self.assertEqual(checks['writes-past-end']['guards']['cases'], 1)
        self.assertNotIn('cases', checks['promote-separately']['bound'])
        self.assertEqual(checks['promote-separately']['identify']['cases'], 1)
        self.assertNotIn('identify', checks['c-twice'])
        self.assertEqual(found['fault'][0]['class_name'], 'dropped arguments, c and d')
        self.assertEqual(totals['classes']['C16'],
                         {'name': 'dropped arguments, c and d', 'faults': 1, 'caught': 1})
        self.assertEqual(totals['columns']['identify']['found'], 1)
        self.assertTrue(totals['columns']['torch']['criterion'])

    def test_the_text_has_a_line_a_fault_and_totals(self):
        done = run('selftest', *named('c-twice', 'bound-too-wide'))
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r'^caught +c-twice +C16c +function +bitwise 1 bound 1')
        self.assertRegex(lines[1], r'^caught +bound-too-wide +C41 +verifier +bound.* '
                                   r'blind to scale-a-late')
        self.assertIn('2 of 2 faults caught as their kind demands', done.stdout)
        self.assertIn('1 of 1 function and execution faults (100 %) found without '
                      'bitwise', done.stdout)
        self.assertIn('0 false alarms', done.stdout)

    def test_the_matrix_is_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'matrix.md')
            done = run('selftest', *named('promote-separately', 'c-twice', 'half-up'),
                       '--cases', 2, '--markdown', path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('C16 dropped arguments, c and d', done.stdout)
            with open(path, encoding='utf-8') as file:
                lines = file.read().splitlines()
        tables = [line.split(' | ')[0].strip('| ') for line in lines
                  if line.startswith('| C')]
        self.assertEqual(tables, ['C12 encoding FP8', 'C15 rounding in the epilogue',
                                  'C16 dropped arguments, c and d', 'C12f', 'C15',
                                  'C16c'])
        heading = next(line for line in lines if line.startswith('| class | fault |'))
        columns = heading.strip('| ').split(' | ')
        row = next(line for line in lines if line.startswith('| C16c |'))
        cells = [cell.strip() for cell in row[1:-1].split('|')]
        self.assertEqual(len(cells), len(columns))
        self.assertEqual(cells[columns.index('bound')], '1')
        self.assertEqual(cells[columns.index('repeat')], '-')
        self.assertEqual(cells[columns.index('identify')], '')
        self.assertIn('3 of 3 faults are caught as their kind demands', '\n'.join(lines))
        done = run('selftest', *named('c-twice'), '--cases', 1, '--markdown', '-')
        self.assertTrue(done.stdout.startswith('# Planted faults'))
        self.assertIn('**survives**' if done.returncode else '| function, caught |',
                      done.stdout)

    def test_coarse_accumulators_are_found_without_the_model(self):
        # As positive data may not show them, by integers that just fit.
        for out in 'bf16', 'f32':
            line = f'fp8_gemm_nt m=4 n=16 k=4096 recipe=tensor out={out} data=positive'
            for fault in COARSE:
                with self.subTest(fault=fault, out=out):
                    status, cases, _ = results(
                        line, '--candidate', f'fault:{fault}', '--reference', 'oracle',
                        '--check', 'bound,properties', '--require', 'bounded')
                    self.assertEqual(status, 1)
                    self.assertIn('property full-accumulator',
                                  ' '.join(finding['message']
                                           for finding in cases[0]['findings']))
            status, _, _ = results(line, '--reference', 'oracle', '--check',
                                   'bound,properties', '--require', 'bounded')
            self.assertEqual(status, 0)

    def test_the_killing_case_repeats(self):
        _, found = objects(*named('scale-a-late'))
        line = found['fault'][0]['case']
        status, cases, _ = results(line, '--candidate', 'fault:scale-a-late')
        self.assertEqual((status, cases[0]['verdict']), (1, 'outside'))
        status, _, _ = results(line)
        self.assertEqual(status, 0)

    def test_a_fault_that_survives_fails(self):
        # One case is too few for it to be seen by more than its bits.
        status, found = objects(*named('tile-wide-scale'), '--cases', 1)
        self.assertEqual((status, found['fault'][0]['caught']), (1, False))
        self.assertEqual(found['summary'][0]['failed'], 1)
        done = run('selftest', *named('tile-wide-scale'), '--cases', 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn('SURVIVES tile-wide-scale', done.stdout)
        self.assertIn('seen first on fp8_gemm_nt', done.stdout)

    def test_time_that_is_up_leaves_the_rest(self):
        status, found = objects('--seconds', 1)
        totals = found['selftest'][0]
        self.assertGreater(totals['skipped'], 0)
        self.assertGreater(totals['faults'], 0)
        self.assertEqual(status, 0)

    def test_the_list_says_what_each_fault_is(self):
        done = run('list', 'faults')
        self.assertEqual(done.returncode, 0)
        names = [line.split()[0] for line in done.stdout.splitlines()
                 if line.startswith('  ') and line[2] != ' ']
        self.assertGreater(len(names), 100)
        self.assertEqual(len(names), len(set(names)))
        self.assertIn('C14b accumulator and promotion; rounding of fp8_gemm_nt, as in',
                      done.stdout)

    def test_bad_arguments_are_refused(self):
        for arguments, sentence in (
                (['--fault', 'promote-51'], "did you mean 'promote-512'?"),
                (['--fault', ''], '`assay list faults` shows all'),
                (['--seconds', '0'], '--seconds 0 is no count; use 1 to 1000000'),
                (['--seconds', 'x'], '--seconds x is no count'),
                (['--cases', '-1'], '--cases -1 is no count; use 1 to 1000'),
                (['--json', '/nowhere/x'], "can't be written"),
                (['--markdown', '/nowhere/x'], "can't be written"),
                (['--markdown', '-', '--json', '-'], "can't both go to stdout")):
            with self.subTest(arguments):
                done = run('selftest', *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
                self.assertIn(sentence, done.stderr)
        for candidate in 'fault', 'fault:nothing', 'fault:bound-too-wide':
            done = run('verify', 'fp8_gemm_nt m=1 n=8 k=16', '--candidate', candidate)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == '__main__':
    unittest.main()
