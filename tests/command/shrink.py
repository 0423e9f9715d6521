# SPDX-License-Identifier: MIT
"""`assay shrink`: from a failing case to a line that fits in a message."""
import os
import pathlib
import re
import shlex
import unittest

from assay_tool import TOOL, ToolTest, results, run

PLUGINS = pathlib.Path(os.environ.get(
    'ASSAY_PLUGINS', pathlib.Path(TOOL).parent / 'plugin'))
TAIL = 'fp8_gemm_nt m=20 n=24 k=400 recipe=1d1d out=f32 seed=3'
CANDIDATE = ['--candidate', 'fault:k-tail-scale']
PLAIN = 'fp8_gemm_nt m=6 n=24 k=128 a_stride=144 data=wide seed=2'


def smallest(done):
    """The line that is found: the one after the empty line."""
    return done.stdout.split('\n\n')[1].splitlines()[0]


class Shrink(ToolTest):
    def test_a_fault_becomes_a_line_that_repeats(self):
        done = run('shrink', TAIL, *CANDIDATE)
        self.assertEqual(done.returncode, 0, done.stderr)
        line = smallest(done)
        self.assertRegex(line, r'^fp8_gemm_nt m=1 n=8 k=144 .*data=zero seed=1 bits=')
        self.assertLess(len(line), 160)
        self.assertIn(f'FAILED outside  {line}\n', done.stdout)
        self.assertRegex(done.stdout, r'\n  fp8_gemm_nt outside by bitwise, bound: d\[')
        before, after = re.search(r'  (\d+) elements, \d+ in the largest tensor; were '
                                  r'(\d+) and', done.stdout).groups()[::-1]
        self.assertLess(int(after), int(before) / 10)
        self.assertNotIn('flaky', done.stdout)
        repeat = shlex.split(re.search(r'  repeat: (.*)', done.stdout)[1])
        self.assertEqual(repeat[:3], ['assay', 'verify', line])
        self.assertEqual(run(*repeat[1:]).returncode, 1)
        self.assertEqual(run('verify', line).returncode, 0)

    def test_steps_go_to_the_error_output(self):
        done = run('shrink', TAIL, *CANDIDATE)
        steps = [line.split() for line in done.stderr.splitlines()]
        self.assertIn('dimensions', [step[0] for step in steps])
        self.assertIn('elements', [step[0] for step in steps])
        elements = [int(step[1]) for step in steps]
        self.assertEqual(elements, sorted(elements, reverse=True))

    def test_what_is_minimal_stays(self):
        line = smallest(run('shrink', TAIL, *CANDIDATE))
        again = run('shrink', line, *CANDIDATE)
        self.assertEqual((again.returncode, smallest(again)), (0, line))
        self.assertEqual(again.stderr, '')

    def test_a_case_that_passes_is_said_to(self):
        done = run('shrink', TAIL)
        self.assertEqual(done.returncode, 1)
        self.assertIn('nothing to shrink: the case did not fail in 3 tries', done.stdout)
        done = run('shrink', 'convert to=e4m3 count=4', *CANDIDATE)
        self.assertEqual(done.returncode, 5, done.stdout)

    def test_budgets_are_kept(self):
        done = run('shrink', TAIL, *CANDIDATE, '--trials', 5)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r'  [0-5] trials in .*; not all was tried')
        done = run('shrink', TAIL, *CANDIDATE, '--seconds', '0.000001')
        self.assertEqual((done.returncode, smallest(done)), (0, TAIL))

    def test_options_of_trials_count(self):
        done = run('shrink', TAIL, *CANDIDATE, '--check', 'bitwise', '--reference',
                   'model')
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r'fp8_gemm_nt outside by bitwise: d\[')
        self.assertIn('--reference model --check bitwise', done.stdout)
        # Bits that the numerics do not claim are nothing to shrink.
        done = run('shrink', 'fp8_gemm_nt m=20 n=24 k=384 out=f32 seed=3', '--candidate',
                   'fault:promote-separately', '--require', 'bounded')
        self.assertEqual(done.returncode, 1)

    def test_single_runs_that_go_wrong(self):
        done = run('shrink', 'fp8_gemm_nt m=3 n=16 k=32 seed=3', '--candidate',
                   'fault:one-run-in-ten', '--check', 'all', '--trials', 60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'fp8_gemm_nt outside by .*repeat')
        self.assertRegex(smallest(done), r'^fp8_gemm_nt m=1 n=8 ')

    def test_somebodys_code_may_crash(self):
        for mode, signature in (('crash', 'crashed: SIG'),
                                ('past-the-end', 'crashed: wrote outside its tensors'),
                                ('unwritten', 'outside by bound')):
            candidate = f'plugin:{PLUGINS}/example.so,mode={mode},rows=6'
            with self.subTest(mode):
                done = run('shrink', PLAIN, '--candidate', candidate,
                           '--check', 'bound', '--seconds', 10)
                self.assertEqual(done.returncode, 0, done.stderr)
                if 'AddressSanitizer' in done.stdout:  # ends a crash by a status
                    signature = signature.replace('SIG', 'plugin example # exited')
                self.assertIn(f'\n  fp8_gemm_nt {signature}', done.stdout)
                line = smallest(done)
                self.assertTrue(line.startswith('fp8_gemm_nt m=6 n='), line)
                self.assertTrue(line.endswith(' data=zero seed=1'), line)
                status, cases, _ = results(line, '--candidate', candidate)
                self.assertIn(status, (1, 3), cases)

    def test_bad_arguments_are_refused(self):
        for arguments, sentence in (
                ([], 'shrink needs a case that fails'),
                ([TAIL, TAIL], 'shrink takes one case'),
                (TAIL.split(), "'m=20' is a second one; quote a line"),
                ([TAIL, '--seconds', '0'], '--seconds 0 is no time'),
                ([TAIL, '--trials', 'x'], '--trials x is no count; use 1 to 1000000'),
                ([TAIL, '--candidate', 'fault:k-tail-scal'], "did you mean 'k-tail-"),
                ([TAIL, '--check', 'bitwis'], "did you mean 'bitwise'?"),
                ([TAIL, '--timeout', 'x'], '--timeout'),
                (['fp8_gemm_nt m=1 n=9 k=16'], 'n=9'),
                (['fp8_gemm_nt m=1 n=8 k=16 as=nothing'], "'nothing'"),
                (['fp8_gemm_nt m=1 n=8 k=16 data=recorded'], 'cannot be shrunk')):
            with self.subTest(arguments):
                done = run('shrink', *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
                self.assertIn(sentence, done.stderr)


if __name__ == '__main__':
    unittest.main()
