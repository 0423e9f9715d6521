# SPDX-License-Identifier: MIT
"""Verdicts, exit statuses and reports of `assay verify`, as a user meets them."""
import json
import os
import unittest
from collections import Counter

from assay_tool import CORPUS, ToolTest, results, run

CASE = 'fp8_gemm_nt m=70 n=72 k=400'
TENSOR = 'fp8_gemm_nt m=64 n=64 k=512 recipe=tensor out=f32'


class Verdicts(ToolTest):
    def test_recorded_outputs_of_the_h200_are_equal(self):
        status, cases, summary = results('--recorded', CORPUS / 'recorded')
        self.assertEqual(status, 0)
        self.assertEqual({case['verdict'] for case in cases}, {'equal'})
        count = Counter()
        for case in cases:
            kernel = case['source'].rsplit('/', 1)[1].split('_')[0]
            if kernel == 'flashmla':
                kernel = case['case'].split(' ')[0]
            for output in case['outputs']:
                self.assertEqual(output['differ'], 0)
                self.assertLessEqual(output['max_error_over_bound'], 1)
                count[kernel] += output['defined']
        self.assertEqual(count['deepgemm'], 437904 + 134400 + 196160)
        self.assertEqual(count['cublaslt'], 212992 + 394816)
        self.assertEqual(count['pytorch'], 653032)
        self.assertEqual(count['wgmma'], 178176)
        self.assertEqual(count['unary.safetensors.zst'], 56696)
        self.assertEqual(count['mla_dense_decode'], 1248642)
        self.assertEqual(count['mla_sparse_decode'], 1313280)
        self.assertEqual(count['mla_sparse_prefill'], 1513216)
        self.assertEqual(count['mla_plan'], 3259)
        self.assertEqual(count['mla_cache_dequantise'], 73728)
        self.assertEqual(summary['elements_equal'], sum(count.values()))

    def test_the_model_against_itself_is_only_bounded(self):
        status, cases, _ = results(CASE)
        self.assertEqual((status, cases[0]['verdict']), (0, 'bounded'))
        self.assertNotIn('differ', cases[0]['outputs'][0])
        self.assertEqual(results(CASE, '--require', 'equal')[0], 1)

    def test_the_oracle_is_bounded_and_not_equal(self):
        status, cases, _ = results(CASE, '--candidate', 'oracle')
        self.assertEqual((status, cases[0]['verdict']), (0, 'bounded'))
        self.assertGreater(cases[0]['outputs'][0]['differ'], 0)
        status, _, _ = results(CASE, '--candidate', 'oracle', '--require', 'equal')
        self.assertEqual(status, 1)

    def test_a_wrong_claim_is_explained_by_the_numerics_it_equals(self):
        path = self.record(TENSOR, 'model:cublaslt-fast')
        status, cases, _ = results('--recorded', path)
        self.assertEqual((status, cases[0]['verdict'], cases[0]['explanation']),
                         (1, 'explained', 'cublaslt-fast'))
        self.assertEqual(results('--recorded', path, '--require', 'explained')[0], 0)

    def test_an_explanation_does_not_excuse_the_bound(self):
        path = self.record('fp8_gemm_nt m=64 n=64 k=8192 recipe=tensor out=f32 '
                           'data=positive seed=1', 'model:cublaslt-fast')
        for require, wanted in (('equal', 1), ('explained', 0), ('bounded', 1)):
            status, cases, _ = results('--recorded', path, '--require', require)
            self.assertEqual((status, cases[0]['verdict']), (wanted, 'explained'),
                             require)
            self.assertGreater(cases[0]['outputs'][0]['outside'], 0)

    def test_a_knob_makes_other_bits(self):
        path = self.record(CASE, 'model:promote_k=64')
        status, cases, _ = results('--recorded', path)
        self.assertEqual((status, cases[0]['verdict']), (1, 'bounded'))
        self.assertEqual(
            results('--recorded', path, '--reference', 'oracle,model:promote_k=64')[0], 0)

    def test_exact_data_are_held_to_the_oracle_to_the_bit(self):
        for candidate in ('model', 'oracle'):
            arguments = (CASE + ' data=exact', '--candidate', candidate)
            self.assertIn('; exact ', run('verify', *arguments).stdout)
            self.assertEqual(results(*arguments)[1][0]['outputs'][0]['inexact'], 0)
        self.assertNotIn('inexact', results(CASE)[1][0]['outputs'][0])

    def test_unmeasured_profiles_are_called_unverified(self):
        _, cases, _ = results(CASE + ' as=deepgemm-1d2d,unit=blackwell-fp8')
        self.assertTrue(cases[0]['unverified_profile'])
        self.assertNotIn('unverified_profile', results(CASE)[1][0])

    def test_every_verdict_on_blackwell_says_unverified_profile(self):
        case = 'fp8_gemm_nt m=70 n=72 k=400 recipe=mx gran_k=32 b_format=e2m1'
        path = self.record(case)
        for arguments in ((case,), (case, '--candidate', 'oracle'),
                          (case + ' as=k_order=descending',), ('--recorded', path)):
            self.assertIn('unverified profile', run('verify', *arguments).stdout)
            status, cases, _ = results(*arguments)
            self.assertEqual((status, cases[0]['unverified_profile']), (0, True))
        self.assertEqual(results('--recorded', path)[1][0]['verdict'], 'equal')

    def test_high_bits_of_an_e2m1_byte_mean_nothing(self):
        case = ('fp8_gemm_nt m=2 n=8 k=16 recipe=mx a_format=e2m1 out=f32 '
                'bits=a.1.3:{:02x}')
        hashes = [results(case.format(code))[1][0]['outputs'][0]['candidate_hash']
                  for code in (0x05, 0xf5, 0x04)]
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])

    def test_only_the_checks_asked_for_are_made(self):
        path = CORPUS / 'recorded/deepgemm_many_c.safetensors.zst'
        _, cases, _ = results('--recorded', path, '--check', 'bitwise')
        self.assertNotIn('max_error_over_bound', cases[0]['outputs'][0])
        _, cases, _ = results('--recorded', path, '--check', 'bound',
                              '--require', 'bounded')
        self.assertEqual(cases[0]['verdict'], 'bounded')

    def test_constant_results_prove_nothing(self):
        zeros = ','.join(f'a.{m}.{k}:0' for m in range(2) for k in range(16))
        case = f'fp8_gemm_nt m=2 n=8 k=16 bits={zeros}'
        status, cases, summary = results(case)
        self.assertEqual((status, cases[0]['decisive'], summary['indecisive']),
                         (1, False, 1))
        self.assertEqual(results(case, '--max-indecisive', '1')[0], 0)

    def test_an_empty_sum_is_constant_by_design(self):
        status, cases, _ = results('fp8_gemm_nt m=8 n=8 k=0')
        self.assertEqual((status, cases[0]['decisive']), (0, True))

    def test_no_rows_are_indecisive(self):
        self.assertEqual(results('fp8_gemm_nt m=0 n=8 k=16')[0], 1)

    def test_nothing_selected_is_no_success(self):
        self.assertEqual(run('verify').returncode, 5)
        self.assertEqual(run('verify', '--suite', '-', text='# nothing\n').returncode, 5)
        self.assertEqual(run('verify', '--recorded', self.folder).returncode, 5)

    def test_instruction_sets_give_the_same_bits(self):
        hashes = set()
        for name in ('portable', 'avx2', 'avx512'):
            done = run('verify', CASE, '--json', '-',
                       env={**os.environ, 'ASSAY_ISA': name})
            if done.returncode == 2:
                self.assertIn('not an instruction set of this machine', done.stderr)
                continue
            case = json.loads(done.stdout.splitlines()[1])
            hashes.add(case['outputs'][0]['candidate_hash'])
        self.assertEqual(len(hashes), 1)
        self.assertEqual(run('list', 'checks', env={**os.environ, 'ASSAY_ISA': 'sse'})
                         .returncode, 2)

    def test_a_suite_runs_in_order(self):
        suite = f'# two cases\n{CASE} seed=1\n\n{CASE} seed=2\n'
        status, cases, summary = results('--suite', '-', text=suite)
        self.assertEqual((status, summary['cases']), (0, 2))
        self.assertEqual([case['case'] for case in cases],
                         [f'{CASE} seed=1', f'{CASE} seed=2'])

    def test_explicit_bits_change_just_their_outputs(self):
        plain = results(CASE)[1][0]
        changed = results(CASE + ' bits=sfa.3.0:40490fdb')[1][0]
        self.assertNotEqual(plain['input_hash'], changed['input_hash'])
        self.assertNotEqual(plain['outputs'][0]['candidate_hash'],
                            changed['outputs'][0]['candidate_hash'])

    def test_json_goes_to_a_file_beside_the_text(self):
        path = self.folder / 'report.json'
        done = run('verify', CASE, '--json', path)
        self.assertIn('bounded', done.stdout)
        types = [json.loads(line)['type'] for line in path.read_text().splitlines()]
        self.assertEqual(types, ['header', 'case', 'summary'])
        self.assertEqual([path], list(self.folder.iterdir()))

    def test_a_random_suite_begins_like_a_shorter_one(self):
        long = run('list', 'cases', '--op', 'fp8_gemm_nt', '--count', 20, '--seed', 4)
        short = run('list', 'cases', '--op', 'fp8_gemm_nt', '--count', 5, '--seed', 4)
        self.assertEqual(long.stdout.splitlines()[:5], short.stdout.splitlines())
        self.assertEqual(len(set(long.stdout.splitlines())), 20)

    def test_every_list_has_lines(self):
        for what in ('operations', 'backends', 'numerics', 'data', 'checks', 'reports'):
            done = run('list', what)
            self.assertEqual(done.returncode, 0)
            self.assertGreater(len(done.stdout.splitlines()), 1, what)

    def test_a_recording_of_generated_data_verifies_anywhere(self):
        path = self.record(CASE + ' seed=9')
        self.assertEqual(results('--recorded', path)[0], 0)
        status, cases, _ = results(CASE + ' seed=9', '--candidate', f'recorded:{path}')
        self.assertEqual((status, cases[0]['verdict']), (0, 'equal'))
        self.assertEqual(
            results(CASE + ' seed=8', '--candidate', f'recorded:{path}')[0], 2)


if __name__ == '__main__':
    unittest.main()
