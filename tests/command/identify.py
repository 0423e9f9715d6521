# SPDX-License-Identifier: MIT
"""`assay identify` names what computed the recorded outputs and what a candidate does."""
import json
import unittest

from assay_tool import CORPUS, ToolTest, run

GEMM = 'fp8_gemm_nt m=32 n=32 k=256 recipe=tensor out=f32'
# Default numerics of what is recorded, by operation and recipe.
USUAL = {'1d2d': 'deepgemm-1d2d', '1d1d': 'deepgemm-1d1d', 'tensor': 'cublaslt-promoted',
         'mla_dense_decode': 'flashmla-dense', 'mla_plan': 'flashmla-plan',
         'mla_sparse_decode': 'flashmla-sparse-decode',
         'mla_sparse_prefill': 'flashmla-sparse-prefill',
         'mla_cache_dequantise': 'flashmla-dequantise'}
# Named numerics that are the same, and appear under the first name.
SAME = {'cublaslt-block': 'deepgemm-1d2d'}


def expected_numerics(line):
    words = dict(word.split('=', 1) for word in line.split()[1:])
    operation = line.split()[0]
    usual = USUAL.get(operation) or USUAL[words.get('recipe', '1d2d')]
    return SAME.get(words.get('as'), words.get('as', usual))


class Identify(ToolTest):
    def found(self, *arguments, expected=0):
        """The case objects of one run, which a busy machine does not cut short."""
        if '--seconds' not in arguments:
            arguments += ('--seconds', '300')
        done = run('identify', *arguments, '--json', '-')
        self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
        header, *cases, summary = map(json.loads, done.stdout.splitlines())
        self.assertEqual((header['type'], header['command']), ('header', 'identify'))
        self.assertEqual((summary['cases'], summary['exit_code']), (len(cases), expected))
        return cases

    def test_all_recorded_kernels_are_identified(self):
        count = 0
        for vendor in ('cublaslt', 'deepgemm', 'flashmla'):
            files = sorted((CORPUS / 'recorded').glob(vendor + '_*.safetensors.zst'))
            self.assertGreater(len(files), 5)
            for path in files:
                for case in self.found('--recorded', path, '--seconds', '0.02'):
                    whole = [setting['numerics'] for setting in case['settings']
                             if setting['parts'] == case['parts']]
                    self.assertTrue(case['identified'], case['case'])
                    self.assertIn(expected_numerics(case['case']), whole, case['case'])
                    self.assertIn(case['sentence'].split()[1].rstrip(';.'), whole)
                    count += 1
        self.assertGreater(count, 240)

    def test_a_turned_knob_is_named(self):
        case, = self.found('--recorded', self.record(GEMM, 'model:promote_k=32'))
        self.assertEqual(case['settings'][0]['numerics'],
                         'cublaslt-promoted,promote_k=32')
        self.assertIn('equals cublaslt-promoted with promote_k=32', case['sentence'])

    def test_what_cannot_be_told_apart_is_listed(self):
        path = self.record('fp8_gemm_nt m=8 n=8 k=128 recipe=tensor',
                           'model:promote_k=256')
        case, = self.found('--recorded', path)
        names = [setting['numerics'] for setting in case['settings']]
        for name in ('cublaslt-promoted', 'cublaslt-promoted,promote_k=256',
                     'cublaslt-fast'):
            self.assertIn(name, names)
        for name in names:
            done = run('verify', '--recorded', path, '--reference', 'model:' + name)
            self.assertIn('1 equal', done.stdout, name)
        self.assertRegex(case['sentence'], r'promote_k=128, .*256')

    def test_further_cases_tell_a_live_candidate_apart(self):
        line = 'fp8_gemm_nt m=8 n=8 k=128 recipe=tensor'
        for k in ('never', '256', '512'):
            case, = self.found(line, '--candidate', 'model:promote_k=' + k)
            names = [setting['numerics'] for setting in case['settings']]
            wanted = ('cublaslt-fast' if k == 'never' else
                      'cublaslt-promoted,promote_k=' + k)
            self.assertEqual(case['settings'][0]['numerics'], wanted, case['sentence'])
            self.assertNotIn('cublaslt-promoted', names)
            self.assertGreater(case['further_run'], 0)

    def test_a_candidate_that_only_this_case_fits_is_refuted(self):
        line = GEMM + ' data=exact'
        case, = self.found(line, '--candidate', 'oracle', expected=1)
        self.assertFalse(case['identified'])
        self.assertIn('what fits this case fails', case['sentence'])
        self.found('--recorded', self.record(line, 'oracle'))

    def test_pairs_are_tried_on_request(self):
        path = self.record(GEMM, 'model:promote_k=64,k_order=descending')
        case, = self.found('--recorded', path, expected=1)
        self.assertRegex(case['sentence'],
                         r'^unexplained: the nearest, .* gives \d+\.\d %')
        shares = [setting['equal'] / setting['elements'] for setting in case['nearest']]
        self.assertEqual(shares, sorted(shares, reverse=True))
        for setting in case['nearest']:
            self.assertEqual(setting['elements'], 32 * 32)
        case, = self.found('--recorded', path, '--pairs')
        self.assertEqual(case['settings'][0]['numerics'],
                         'cublaslt-promoted,promote_k=64,k_order=descending')

    def test_integers_that_wide_ranges_leave_out_at_first_are_found(self):
        line = 'mla_plan b=3 s_k=100,1000,2000'
        for knob in ('block_keys=14', 'overhead=20'):
            case, = self.found(line, '--candidate', 'model:' + knob)
            names = [setting['numerics'] for setting in case['settings']]
            self.assertIn('flashmla-plan,' + knob, names)
            self.assertTrue(case['sentence'].startswith('equals flashmla-plan with '))
            self.assertRegex(case['sentence'], r'\. \d+ further cases looked at, \d+ run')

    def test_text_ends_in_the_sentence(self):
        path = self.record(GEMM, 'model:cublaslt-fast')
        done = run('identify', '--recorded', path)
        self.assertEqual(done.returncode, 0)
        self.assertIn('  equals cublaslt-fast', done.stdout.splitlines()[-1])

    def test_mistakes_are_named_and_leave_nothing(self):
        path = self.folder / 'identify.json'
        for arguments, word in [
                ([GEMM], '--candidate'),
                ([GEMM, '--candidate', 'modell'], 'model'),
                ([GEMM + ' n=9', '--candidate', 'model'], 'n'),
                (['--recorded', '/no/such/file'], '/no/such/file'),
                ([GEMM, '--candidate', 'model', '--seconds', '0'], '--seconds 0'),
                ([GEMM, '--candidate', 'model', '--seconds', 'nan'], '--seconds nan')]:
            done = run('identify', *arguments, '--json', path)
            self.assertEqual((done.returncode, done.stdout), (2, ''), arguments)
            self.assertIn(word, done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [], arguments)
        self.assertEqual(self.found(expected=5), [])


if __name__ == '__main__':
    unittest.main()
