# SPDX-License-Identifier: MIT
"""Grouped GEMMs against dense ones, and what is defined in their outputs."""
import array
import unittest

from assay_tool import CORPUS, ToolTest, results, run

import safetensors_file

GROUPED = ('m_grouped_fp8_gemm_nt_contiguous', 'm_grouped_fp8_gemm_nt_masked',
           'k_grouped_fp8_gemm_nt_contiguous', 'k_grouped_fp8_gemm_tn_contiguous')


def output_hash(case):
    status, cases, _ = results(case)
    assert status == 0, case
    return cases[0]['outputs'][0]['candidate_hash']


class Grouped(ToolTest):
    def test_one_group_of_rows_is_the_dense_gemm(self):
        for rest in ('n=136 k=400 seed=3',
                     'n=64 k=128 out=f32 a_format=e5m2 data=wide seed=4'):
            dense = output_hash(f'fp8_gemm_nt m=128 {rest}')
            contiguous = f'm_grouped_fp8_gemm_nt_contiguous group_m=128 {rest}'
            self.assertEqual(output_hash(contiguous), dense)
            n, k, *more = rest.split(' ')
            masked = ' '.join(['m_grouped_fp8_gemm_nt_masked groups=1 m_max=128', n, k,
                               'masked_m=128', *more])
            self.assertEqual(output_hash(masked), dense)

    def test_one_group_of_k_is_the_dense_gemm(self):
        for rest in ('seed=3', 'b_format=e5m2 data=cancel seed=4'):
            dense = output_hash('fp8_gemm_nt m=128 n=72 k=384 recipe=1d1d out=f32 c=1 '
                                + rest)
            for layout in ('nt', 'tn'):
                case = f'k_grouped_fp8_gemm_{layout}_contiguous m=128 n=72 ks=384 {rest}'
                self.assertEqual(output_hash(case), dense)

    def test_an_empty_group_keeps_c_to_the_bit(self):
        path = self.record('k_grouped_fp8_gemm_nt_contiguous m=128 n=8 ks=128,0 '
                           'data=special seed=5')
        _, tensors = safetensors_file.read(path)
        group_bytes = 128 * 8 * 4
        c, d = tensors['c'].data, tensors['d'].data
        self.assertEqual(d[group_bytes:], c[group_bytes:])
        self.assertNotEqual(d[:group_bytes], c[:group_bytes])

    def test_no_k_at_all_keeps_c_to_the_bit(self):
        """As DeepGEMM, which copies c and runs no kernel."""
        path = self.record('fp8_gemm_nt m=33 n=72 k=0 recipe=1d1d out=f32 c=1 '
                           'data=special seed=1464156037')
        _, tensors = safetensors_file.read(path)
        values = array.array('I', tensors['c'].data)
        self.assertTrue(any((value << 1 & 0xFFFFFFFF) > 0xFF000000
                            and value != 0x7FFFFFFF for value in values))
        self.assertEqual(tensors['d'].data, tensors['c'].data)

    def flip(self, source, row, columns):
        """Verifies @source with a bit of column 0 of output row @row flipped."""
        metadata, tensors = safetensors_file.read(source)
        dtype, shape, data = tensors['d']
        data = bytearray(data)
        data[2 * row * columns] ^= 4
        tensors['d'] = safetensors_file.tensor(dtype, shape, bytes(data))
        path = self.folder / 'flipped.safetensors'
        safetensors_file.write(path, metadata, tensors)
        return results('--recorded', path)

    def test_flips_count_in_rows_that_count(self):
        recorded = CORPUS / 'recorded'
        contiguous = recorded / 'deepgemm_many_cont.safetensors.zst'  # 200, 244, 256 rows
        masked = recorded / 'deepgemm_masked_m1.safetensors.zst'  # 0, 1, 200, 256 of 256
        for source, columns, counting, others in (
                (contiguous, 192, (0, 199, 256, 499, 767), (200, 255, 500)),
                (masked, 320, (256, 512, 711, 1023), (0, 255, 257, 383, 384, 712))):
            for row in counting:
                status, cases, _ = self.flip(source, row, columns)
                self.assertEqual((status, cases[0]['outputs'][0]['differ']), (1, 1), row)
            for row in others:
                self.assertEqual(self.flip(source, row, columns)[0], 0, row)

    def test_recorded_rows_are_all_there(self):
        for name, defined in (('many_cont', 134400), ('masked_m1', 146240),
                              ('masked_m2', 49920)):
            path = CORPUS / f'recorded/deepgemm_{name}.safetensors.zst'
            _, cases, _ = results('--recorded', path)
            output = cases[0]['outputs'][0]
            self.assertEqual((cases[0]['verdict'], output['defined']), ('equal', defined))

    def test_contradictory_sizes_are_refused(self):
        masked, contiguous, by_k = GROUPED[1], GROUPED[0], GROUPED[2]
        for operation, keys, word in (
                (masked, 'groups=2 m_max=128 n=8 k=16 masked_m=1', 'groups'),
                (masked, 'groups=1 m_max=128 n=8 k=16 masked_m=129', 'm_max'),
                (masked, 'groups=1 m_max=64 n=8 k=16 masked_m=1', '128'),
                (contiguous, 'group_m=1,,2 n=8 k=16', 'group_m'),
                (contiguous, 'group_m=-1 n=8 k=16', 'group_m'),
                (contiguous, 'n=8 k=16', 'group_m'),
                (contiguous, 'n=8 k=16 group_m=' + '1,' * 600 + '1', '512'),
                (contiguous, 'n=8 k=16 group_m=' + '1,' * 200 + '1', '128'),
                (by_k, 'm=128 n=8 ks=64', '128'),
                (by_k, 'm=100 n=8 ks=128', 'm=100')):
            case = f'{operation} {keys}'
            done = run('verify', case)
            self.assertEqual(done.returncode, 2, case)
            self.assertIn(word, done.stderr, case)

    def test_bounds_are_tight_on_positive_data(self):
        # Floors above half of what the model reaches: a doubled bound fails.
        for keys, floor in (
                ('m_grouped_fp8_gemm_nt_contiguous group_m=64,0,65 n=64 k=128 '
                 'out=f32', 0.4),
                ('m_grouped_fp8_gemm_nt_contiguous group_m=64,0,65 n=64 k=128', 0.5),
                ('m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=64 k=128 '
                 'masked_m=64,3 out=f32', 0.4),
                ('k_grouped_fp8_gemm_nt_contiguous m=128 n=64 ks=128,256', 0.4),
                ('k_grouped_fp8_gemm_tn_contiguous m=128 n=64 ks=128,256', 0.4)):
            _, cases, _ = results(f'{keys} data=positive')
            ratio = cases[0]['outputs'][0]['max_error_over_bound']
            self.assertTrue(floor <= ratio < 2 * floor, f'{keys}: {ratio}')

    def test_random_cases_hold(self):
        for operation in GROUPED:
            suite = run('list', 'cases', '--op', operation, '--count', 40, '--seed', 7)
            status, cases, _ = results('--suite', '-', '--max-indecisive', 4,
                                       text=suite.stdout)
            self.assertEqual((status, len(cases)), (0, 40), operation)


if __name__ == '__main__':
    unittest.main()
