# SPDX-License-Identifier: MIT
"""The host code of gpu/'s GEMMs on stand-ins for CUDA: what it cannot do it refuses in
one sentence before anything is launched."""
import os
import unittest

from gpu_host import (ALL, BY_BLOCK, BY_ROW, CONTIGUOUS, CONTIGUOUS_CASE, DENSE, F32,
                      K_GROUPED, MASKED, MASKED_CASE, NT, ONE, ONTO_C, ROWS, TN, HostTest,
                      build_host, tiles, up)

MOST = 2 ** 31 - 1 - 1024  # of rows, and of K
setUpModule = build_host


def tensor(name, form, shape, stride=None, values=()):
    """A word of gemm_calls.cpp; dense without strides."""
    if stride is None:
        stride = [1]
        for extent in reversed(shape[1:]):
            stride.insert(0, stride[0] * extent)
    lists = (','.join(map(str, numbers)) for numbers in (shape, stride, values))
    return ' '.join([name, form, *lists]).rstrip()


def dense_call(m=4, n=16, k=32, a_stride=0, b_stride=0, d_stride=0, out='bf16',
               rows=False, **changed):
    """Of one dense GEMM, with a scale a row of b or a block."""
    blocks = up(k, 128) // 128
    made = {'a': ('a', 'e4m3', (m, k), (a_stride or k, 1)),
            'sfa': ('sfa', 'f32', (m, blocks)),
            'b': ('b', 'e4m3', (n, k), (b_stride or k, 1)),
            'sfb': ('sfb', 'f32', (n if rows else up(n, 128) // 128, blocks)),
            'd': ('d', 'f32' if rows else out, (m, n), (d_stride or n, 1))}
    made.update(changed)
    return [tensor(*one) for one in made.values()]


def m_grouped_call(kind, groups=2, m=128, n=16, k=32, out='bf16', d_stride=0, **changed):
    lead, blocks = ((groups,) if kind == MASKED else ()), up(k, 128) // 128
    rows = d_stride or n, 1
    made = {'a': ('a', 'e4m3', (*lead, m, k)), 'sfa': ('sfa', 'f32', (*lead, m, blocks)),
            'b': ('b', 'e4m3', (groups, n, k)),
            'sfb': ('sfb', 'f32', (groups, up(n, 128) // 128, blocks)),
            'layout': (('masked_m', 'i32', (groups,)) if kind == MASKED else
                       ('m_indices', 'i32', (m,))),
            'd': ('d', out, (*lead, m, n), (m * rows[0], *rows) if lead else rows)}
    made.update(changed)
    return [tensor(*one) for one in made.values()]


def k_grouped_call(m=128, n=16, ks=(128, 256), k=None, d_stride=0, values=(),
                   turned=False, **changed):
    groups, k = len(ks), sum(ks) if k is None else k
    d_stride = d_stride or n

    def scale(name, rows):
        return name, 'f32', (k // 128, rows), (up(rows, 4), 1)

    made = {'a': ('a', 'e4m3', (k, m) if turned else (k * m,)), 'sfa': scale('sfa', m),
            'b': ('b', 'e4m3', (k, n) if turned else (k * n,)), 'sfb': scale('sfb', n),
            'layout': ('grouped_layout', 'i32', (groups,), (1,), values or ks),
            'c': ('c', 'f32', (groups, m, n)),
            'd': ('d', 'f32', (groups, m, n), (m * d_stride, d_stride, 1))}
    made.update(changed)
    return [tensor(*one) for one in made.values()]


class Claims(HostTest):
    def test_sizes(self):
        contiguous = 'm_grouped_fp8_gemm_nt_contiguous group_m=4 unsafe=1'
        masked = 'm_grouped_fp8_gemm_nt_masked groups=1 m_max=128 masked_m=4 unsafe=1'
        for k in 8, 24, 40:
            for case in (f'fp8_gemm_nt m=4 n=16 k={k} unsafe=1',
                         f'{contiguous} n=16 k={k}', f'{masked} n=16 k={k}'):
                self.refused(case, f'k={k} is no multiple of 16, which tensor maps need')
        for n in 4, 20:
            for case in (f'fp8_gemm_nt m=4 n={n} k=32 unsafe=1',
                         f'{contiguous} n={n} k=32', f'{masked} n={n} k=32',
                         f'k_grouped_fp8_gemm_nt_contiguous m=128 n={n} ks=128 unsafe=1',
                         f'k_grouped_fp8_gemm_tn_contiguous m=128 n={n} ks=128 unsafe=1'):
                self.refused(case, f'n={n} is no multiple of 8')
        for m in 64, 130:
            for case in ('m_grouped_fp8_gemm_nt_masked groups=2 n=16 k=32 masked_m=4,4 '
                         f'm_max={m} unsafe=1',
                         f'k_grouped_fp8_gemm_nt_contiguous m={m} n=16 ks=128 unsafe=1',
                         f'k_grouped_fp8_gemm_tn_contiguous m={m} n=16 ks=128 unsafe=1'):
                self.refused(case, f'groups of {m} rows are no multiple of 128: a tile '
                                   'would reach into the next group')

    def test_legal_neighbours(self):
        for case in ('fp8_gemm_nt m=4 n=8 k=16', 'fp8_gemm_nt m=1 n=16 k=32',
                     'fp8_gemm_nt m=4 n=24 k=48 out=f32',
                     'm_grouped_fp8_gemm_nt_contiguous group_m=4 n=8 k=16',
                     'm_grouped_fp8_gemm_nt_masked groups=1 m_max=128 n=8 k=16 '
                     'masked_m=7',
                     'k_grouped_fp8_gemm_nt_contiguous m=128 n=8 ks=128',
                     'k_grouped_fp8_gemm_tn_contiguous m=256 n=8 ks=128', *ALL):
            self.runs(case)

    def test_strides(self):
        case = 'fp8_gemm_nt m=4 n=24 k=32 unsafe=1'
        for stride, wrong, right in ('a_stride', 40, 48), ('b_stride', 36, 64):
            self.refused(f'{case} {stride}={wrong}', f'rows of {stride[0]} are {wrong} '
                         'bytes apart; tensor maps need a multiple of 16')
            self.runs(f'{case} {stride}={right}')
        for out, size, wrong, right in ('bf16', 2, 28, 32), ('f32', 4, 26, 28):
            self.refused(f'{case} out={out} d_stride={wrong}', f'rows of d are '
                         f'{size * wrong} bytes apart; tensor maps need a multiple of 16')
            self.runs(f'{case} out={out} d_stride={right}')

    def test_recipes_and_formats(self):
        for recipe in 'tensor', 'mx':
            self.refused(f'{ONE} recipe={recipe}', 'recipes 1d2d and 1d1d only')
        self.refused(ONE + ' recipe=mx a_format=e2m1', 'recipes 1d2d and 1d1d only')
        self.refused(ONE + ' recipe=1d1d unsafe=1',
                     'with a scale a row of b, d is f32 alone')
        self.refused(F32 + ' c=1 unsafe=1', 'with a scale a block of b, nothing '
                                            'accumulates onto c')
        for name in 'a', 'b':
            tensors = dense_call(**{name: (name, 'e2m1', (16, 32))}, m=16)
            self.claims('fp8_gemm_nt', (tensors, f'{name} is neither e4m3 nor e5m2, '
                                        "which Hopper's tensor cores multiply"))
            for form in 'e5m2', 'e4m3':
                self.claims('fp8_gemm_nt', (
                    dense_call(**{name: (name, form, (16, 32))}, m=16), ''))

    def test_tiles_clusters_and_kernels_that_there_are_not(self):
        e5m2 = ' a_format=e5m2'
        for case, option in (
                (ONE, 'tile=64x24'), (ONE, 'tile=64x'), (ONE, 'tile='),
                (ONE, 'tile=64X64'), (ONE, 'tile=064x64'), (ONE, 'cluster=0'),
                (ONE, 'cluster=3'), (ONE, 'cluster='), (ONE, 'cluster=12'),
                (ONE + e5m2, 'tile=64x64'), (ROWS, 'tile=64x16'),
                (CONTIGUOUS_CASE, 'tile=256x128'), (NT, 'tile=256x128'),
                (NT, 'tile=64x16')):
            self.refused(case, 'no kernel for such operands has the tile and the cluster '
                               f"that '{option}' asks for", ',' + option)
        self.refused(ONE, 'kernel=other does not do fp8_gemm_nt', ',kernel=other')
        self.refused(ONE, 'kernel=replay does not do fp8_gemm_nt', ',kernel=replay')
        for case in ONE, ONE + e5m2, ROWS, MASKED_CASE, NT:
            height, width = tiles(case)[-1]
            for option in f'tile={height}x{width}', 'cluster=1', 'cluster=2':
                self.runs(case, ',' + option)
            self.runs(case, f',tile={height}x{width},cluster=2')

    def test_extents_beyond_32_bits(self):
        def beyond(groups, m, n, k):
            return (f'{groups} groups of {m} x {n} x {k} have coordinates or tiles '
                    'beyond 32 bits')

        top, k_top = MOST + 1, MOST // 16 * 16 + 16
        self.claims('fp8_gemm_nt',
                    (dense_call(m=top), beyond(1, top, 16, 32)),
                    (dense_call(m=MOST), ''),
                    (dense_call(n=top), beyond(1, 4, top, 32)),
                    (dense_call(n=top - 8), ''),
                    (dense_call(k=k_top), beyond(1, 4, 16, k_top)),
                    (dense_call(k=k_top - 16), ''),
                    # Tiles of 64 x 16.
                    (dense_call(m=2 ** 22, n=2 ** 19), beyond(1, 2 ** 22, 2 ** 19, 32)),
                    (dense_call(m=2 ** 22 - 64, n=2 ** 19 - 16), ''))
        for operation, kind in (('m_grouped_fp8_gemm_nt_contiguous', CONTIGUOUS),
                                ('m_grouped_fp8_gemm_nt_masked', MASKED)):
            self.claims(operation, (m_grouped_call(kind, 256, n=2 ** 23),
                                    beyond(256, 128, 2 ** 23, 32)),
                        (m_grouped_call(kind, 255, n=2 ** 23), ''))
        self.claims('m_grouped_fp8_gemm_nt_contiguous',
                    (m_grouped_call(CONTIGUOUS, 256, m=2 ** 23), ''))
        self.claims('m_grouped_fp8_gemm_nt_masked',
                    (m_grouped_call(MASKED, 256, m=2 ** 23),
                     beyond(256, 2 ** 23, 16, 32)),
                    (m_grouped_call(MASKED, 255, m=2 ** 23), ''),
                    (m_grouped_call(MASKED, 2 ** 10, k=2 ** 28),
                     beyond(2 ** 10, 128, 16, 2 ** 28)),
                    (m_grouped_call(MASKED, 2 ** 10 - 1, k=2 ** 28), ''))
        for turned, operation in ((False, 'k_grouped_fp8_gemm_nt_contiguous'),
                                  (True, 'k_grouped_fp8_gemm_tn_contiguous')):
            self.claims(operation,
                        (k_grouped_call(m=2 ** 30, turned=turned),
                         beyond(2, 2 ** 30, 16, 384)),
                        (k_grouped_call(m=2 ** 30 - 1024, turned=turned), ''),
                        (k_grouped_call(k=2 ** 31, turned=turned),
                         beyond(2, 128, 16, 2 ** 31)),
                        (k_grouped_call(k=2 ** 31 - 2048, turned=turned), ''))

    def test_strides_that_no_case_has(self):
        def overlap(name, used, apart):
            return (f'rows of {name} hold {used} bytes and are {apart} apart, so that '
                    'they overlap')

        def read(name, stride, dimension, wanted):
            return (f'{name} has stride {stride} in dimension {dimension}, and the '
                    f'kernels read it with {wanted}')

        self.claims('fp8_gemm_nt', (dense_call(a_stride=16), overlap('a', 32, 16)),
                    (dense_call(b_stride=16), overlap('b', 32, 16)),
                    (dense_call(d_stride=8), overlap('d', 32, 16)),
                    (dense_call(d_stride=12, out='f32'), overlap('d', 64, 48)),
                    (dense_call(d_stride=2 ** 31 + 8), ''),
                    (dense_call(a=('a', 'e4m3', (4, 32), (64, 2))), read('a', 2, 1, 1)),
                    (dense_call(d=('d', 'bf16', (4, 16), (32, 2))), read('d', 2, 1, 1)),
                    (dense_call(sfa=('sfa', 'f32', (4, 1), (4, 1))),
                     read('sfa', 4, 0, 1)))
        self.claims('fp8_gemm_nt recipe=1d1d',
                    (dense_call(rows=True, c=('c', 'f32', (4, 16), (24, 1))),
                     read('c', 24, 0, 16)),
                    (dense_call(rows=True, c=('c', 'f32', (4, 16))), ''))
        labels = ('m_indices', 'i32', (128,), (2,))
        self.claims('m_grouped_fp8_gemm_nt_contiguous', (
            m_grouped_call(CONTIGUOUS, layout=labels), read('m_indices', 2, 0, 1)))
        for name, shape, stride, wanted in (('a', (2, 128, 32), 8192, 4096),
                                            ('d', (2, 128, 16), 4096, 2048),
                                            ('sfa', (2, 128, 1), 256, 128)):
            form = {'a': 'e4m3', 'd': 'bf16'}.get(name, 'f32')
            one = (name, form, shape, (stride, shape[2], 1))
            self.claims('m_grouped_fp8_gemm_nt_masked', (
                m_grouped_call(MASKED, **{name: one}), read(name, stride, 0, wanted)))
        self.claims('k_grouped_fp8_gemm_tn_contiguous', (
            k_grouped_call(turned=True, a=('a', 'e4m3', (384, 128), (144, 1))),
            read('a', 144, 0, 128)))
        scales = ('sfb', 'f32', (3, 18), (18, 1))
        self.claims('k_grouped_fp8_gemm_nt_contiguous',
                    (k_grouped_call(n=24, sfb=('sfb', 'f32', (3, 24), (28, 1))),
                     read('sfb', 28, 0, 24)),
                    (k_grouped_call(sfb=scales), read('sfb', 18, 0, 20)))


class Setup(HostTest):
    # Allocations, counted from 1, whose address is that of an operand.
    ADDRESSES = {ONE: {1: 'a', 3: 'b', 5: 'd', 6: 'sfa'},
                 ROWS: {1: 'a', 3: 'b', 5: 'd', 6: 'sfa', 7: 'sfb'},
                 ONTO_C: {1: 'a', 3: 'b', 5: 'c', 6: 'd', 7: 'sfa', 8: 'sfb'},
                 CONTIGUOUS_CASE: {1: 'a', 3: 'b', 6: 'd', 7: 'sfa'},
                 MASKED_CASE: {1: 'a', 3: 'b', 6: 'd', 7: 'sfa'},
                 NT: {1: 'a', 2: 'sfa', 3: 'b', 4: 'sfb', 6: 'c', 7: 'd'},
                 TN: {2: 'sfa', 4: 'sfb', 6: 'c', 7: 'd', 8: 'a', 9: 'b'}}

    def test_misaligned_operands(self):
        for case, operands in self.ADDRESSES.items():
            for call, name in operands.items():
                self.refused(case, f'{name} lies at 0x[0-9a-f]*8, which no tensor map '
                                   'can describe; it must be aligned to 16 bytes',
                             status='failed', FAKE_CUDA_MISALIGN=f'{call} 8')
        self.refused(ONE, 'a lies at 0x[0-9a-f]*1, which no tensor map can describe; it '
                          'must be aligned to 16 bytes', status='failed',
                     FAKE_CUDA_MISALIGN='1 1')
        self.refused(F32, 'd lies at 0x[0-9a-f]*2; it must be aligned to 4 bytes',
                     status='failed', FAKE_CUDA_MISALIGN='5 2')
        self.runs(F32, FAKE_CUDA_MISALIGN='5 4')
        for call in 1, 5, 6:
            self.runs(ONE, FAKE_CUDA_MISALIGN=f'{call} 16')

    def test_an_encoder_that_fails(self):
        for case, maps in ((ONE, 'd a b sfa'), (F32, 'a b sfa'),
                           (ONTO_C, 'd c a b sfa sfb'), (MASKED_CASE, 'd a b sfa'),
                           (CONTIGUOUS_CASE, 'd a b sfa'), (NT, 'd c a b a b sfa sfb')):
            for call, name in enumerate(maps.split(), 1):
                self.refused(case, rf'the driver makes no tensor map of {name} \(\d+ x '
                                   r'\d+, rows \d+ bytes apart\): error 201',
                             status='failed',
                             FAKE_CUDA=f'cuTensorMapEncodeTiled {call} 201')
            self.runs(case, FAKE_CUDA='cuTensorMapEncodeTiled '
                                      f'{len(maps.split()) + 1} 201')
        self.refused(ONE, 'no tensor map of b (24 x 272, rows 272 bytes apart): error 1',
                     status='failed', FAKE_CUDA='cuTensorMapEncodeTiled 3 1')

    def test_other_functions_that_fail(self):
        for function, error, name in (
                ('cuTensorMapEncodeTiled-lookup', 1, 'NotSupported'),
                ('cudaGetDriverEntryPointByVersion', 801, 'NotSupported'),
                ('cudaGetDevice', 100, 'NoDevice'),
                ('cudaDeviceGetAttribute', 1, 'InvalidValue'),
                ('cudaFuncSetAttribute', 1, 'InvalidValue')):
            for case in ONE, MASKED_CASE, NT:
                self.refused(case, f'setting up: fake error (cudaError{name})',
                             status='failed', FAKE_CUDA=f'{function} 1 {error}')
        found = {'cudaStreamBeginCapture': 900, 'cudaStreamEndCapture': 900,
                 'cudaGraphInstantiateWithFlags': 900, 'cudaLaunchKernelEx': 1}
        for function, error in found.items():
            os.environ['FAKE_CUDA'] = f'{function} 1 {error}'
            case = self.verify(MASKED_CASE, ',kernel=replay')
            self.assertEqual(case['status'], 'failed')
            self.assertIn('setting up: fake error', case['message'])
            self.assertNotIn(['graph', 'of', '1'], self.launches())

    def test_groups_that_are_not_what_the_operands_hold(self):
        for turned, operation in ((False, 'k_grouped_fp8_gemm_nt_contiguous'),
                                  (True, 'k_grouped_fp8_gemm_tn_contiguous')):
            for values, words in (
                    ((64, 320), 'prepare 4 group 0 has k=64, no multiple of 128'),
                    ((512, -128), 'prepare 4 group 1 has k=-128, no multiple of 128'),
                    ((256, 256), 'prepare 4 k is 512 in all groups together, and a holds '
                                 '384'),
                    ((128, 128), 'prepare 4 k is 256 in all groups together, and a holds '
                                 '384')):
                answer, = self.call(('run', operation, '',
                                     *k_grouped_call(values=values, turned=turned)))
                self.assertEqual((answer, self.launches()), (words, []))
            answer, = self.call(('run', operation, '',
                                 *k_grouped_call(values=(256, 128), turned=turned)))
            self.assertEqual(answer, 'launch 0')
            self.assertIn('launch', [words[0] for words in self.launches()])


class Plans(HostTest):
    CALLS = ((DENSE, BY_BLOCK, dense_call()), (DENSE, BY_BLOCK, dense_call(out='f32')),
             (DENSE, BY_ROW, dense_call(rows=True, c=('c', 'f32', (4, 16)))),
             (CONTIGUOUS, BY_BLOCK, m_grouped_call(CONTIGUOUS)),
             (MASKED, BY_BLOCK, m_grouped_call(MASKED)),
             (K_GROUPED, BY_ROW, k_grouped_call()))

    def plan(self, kind, form, tensors, changed='none', group_k='128,256'):
        answer, = self.call(('plan', kind, form, group_k, changed, *tensors))
        return answer

    def test_operands_that_have_moved(self):
        for kind, form, tensors in self.CALLS:
            moved = {name: name for name in ('a', 'b', 'sfa', 'sfb', 'd')}
            moved['layout'] = 'the layout of the groups'
            if any(one.startswith('c ') for one in tensors):
                moved.update({'c': 'c', 'no c': 'c'})
            for changed, name in moved.items():
                with self.subTest(kind=kind, form=form, changed=changed):
                    answer = self.plan(kind, form, tensors, changed)
                    self.assertEqual(answer, f'launch 1 the plan describes {name} where '
                                             'it lay before: make a new one')
                    self.assertEqual(self.launches(), [])
            self.assertEqual(self.plan(kind, form, tensors), 'launch 0')
            self.assertEqual(len(self.launches()), 2)

    def wide(self, kind, form, tensors, **maps):
        self.assertEqual(self.plan(kind, form, tensors), 'launch 0')
        lines = self.recorded()
        found = {words[1] + words[2]: list(map(int, words[4:])) for words in lines
                 if words[0] == 'map'}
        for name, row_bytes in maps.items():
            self.assertEqual(found[name + '0'][3], row_bytes)
        return dict(word.split('=') for words in lines if words[0] == 'arguments'
                    for word in words[1:])

    def test_offsets_of_64_bits(self):
        stride = 2 ** 31 + 8
        bf16, f32 = {'d': 2 * stride}, {'d': 4 * stride}
        wide = {'d_stride': stride}
        for tensors, kind, form, maps in (
                (dense_call(**wide), DENSE, BY_BLOCK, bf16),
                (dense_call(**wide, out='f32'), DENSE, BY_BLOCK, {}),
                (dense_call(**wide, rows=True), DENSE, BY_ROW, f32),
                (m_grouped_call(CONTIGUOUS, **wide), CONTIGUOUS, BY_BLOCK, bf16),
                (m_grouped_call(CONTIGUOUS, **wide, out='f32'), CONTIGUOUS, BY_BLOCK, {}),
                (m_grouped_call(MASKED, **wide), MASKED, BY_BLOCK, bf16),
                (m_grouped_call(MASKED, **wide, out='f32'), MASKED, BY_BLOCK, {}),
                (k_grouped_call(**wide), K_GROUPED, BY_ROW, f32)):
            given = self.wide(kind, form, tensors, **maps)
            self.assertEqual(int(given['d_stride']), stride)
        self.wide(DENSE, BY_BLOCK, dense_call(a_stride=2 ** 33, b_stride=2 ** 32),
                  a=2 ** 33, b=2 ** 32)

    def test_groups_far_behind_each_other(self):
        tensors = k_grouped_call(m=2 ** 20, n=2 ** 19, ks=(2 ** 13, 2 ** 14, 128))
        self.assertEqual(self.plan(K_GROUPED, BY_ROW, tensors,
                                   group_k='8192,16384,128'), 'launch 0')
        found = {(words[1], words[2]): words[3] for words in self.recorded()
                 if words[0] == 'map'}
        for name, place, rows in ('group_a', 2 ** 44, 2 ** 20), ('group_b', 2 ** 45,
                                                                 2 ** 19):
            for group, before in enumerate((0, 8192, 24576)):
                self.assertEqual(found[name, str(group)], f'0+{place + rows * before}')

    def test_what_no_tensor_map_describes(self):
        top = 2 ** 40
        for tensors, words in (
                (dense_call(a_stride=top), f'rows of a are {top} bytes apart'),
                (dense_call(b_stride=top), f'rows of b are {top} bytes apart'),
                (dense_call(d_stride=top // 2), f'rows of d are {top} bytes apart'),
                (dense_call(a_stride=40), 'rows of a are 40 bytes apart')):
            self.assertEqual(self.plan(DENSE, BY_BLOCK, tensors),
                             f'plan 1 {words}, which no tensor map can describe; use a '
                             'multiple of 16 below 2^40')
        for tensors, words in (
                (dense_call(b_stride=16), 'rows of b hold 32 bytes and are 16 apart, so '
                                          'that they overlap; use a longer stride'),
                (dense_call(k=2 ** 32 + 16), f'a is 4 x {2 ** 32 + 16}, and a tensor map '
                                             'takes 1 to 2^32 of each')):
            self.assertEqual(self.plan(DENSE, BY_BLOCK, tensors), f'plan 1 {words}')
        self.assertEqual(self.launches(), [])
        for tensors in (dense_call(a_stride=top - 16), dense_call(d_stride=top // 2 - 8)):
            self.assertEqual(self.plan(DENSE, BY_BLOCK, tensors), 'launch 0')


if __name__ == '__main__':
    unittest.main()
