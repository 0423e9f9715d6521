# SPDX-License-Identifier: MIT
"""The host code of gpu/'s GEMMs on stand-ins for CUDA: what it launches, and the tensor
maps that it makes, are what the case line says."""
import re
import unittest

from assay_tool import run
from gpu_host import (ALL, BY_BLOCK, BY_ROW, CONTIGUOUS, DENSE, F32, K_GROUPED, MASKED,
                      MASKED_CASE, NT, ONE, ONTO_C, ROWS, TN, HostTest, build_host, tiles,
                      up)

GUARD = 4096             # bytes before every tensor, by assay_plugin_cuda.h
MULTIPROCESSORS, MOST_SHARED = 131, 232448
UINT8, FLOAT32, BFLOAT16 = 0, 7, 9  # CUtensorMapDataType
SWIZZLE_128 = 3
setUpModule = build_host


class Meaning:
    """What a case line says about a launch; allocations count in their order."""

    def __init__(self, case):
        self.operation, *words = case.split()
        self.of = dict(word.split('=', 1) for word in words)
        self.form = BY_BLOCK
        self.c = False
        self.turned = '_tn_' in self.operation
        self.groups, self.group_k = 1, []
        if self.operation == 'fp8_gemm_nt':
            self.kind, self.m, names = DENSE, self.number('m'), []
            self.form = BY_ROW if self.of.get('recipe') == '1d1d' else BY_BLOCK
            self.c = self.number('c') == 1
        elif 'contiguous' in self.operation and self.operation[0] == 'm':
            rows = self.numbers('group_m')
            self.kind, self.groups, names = CONTIGUOUS, len(rows), ['layout']
            self.m = sum(up(one, 128) for one in rows)
        elif self.operation[0] == 'm':
            self.kind, self.m, names = MASKED, self.number('m_max'), ['layout']
            self.groups = self.number('groups')
        else:
            self.kind, self.m, names = K_GROUPED, self.number('m'), ['layout']
            self.group_k = self.numbers('ks')
            self.form, self.groups, self.c = BY_ROW, len(self.group_k), True
        self.n = self.number('n')
        self.k = sum(self.group_k) if self.kind == K_GROUPED else self.number('k')
        self.is_f32 = self.kind == K_GROUPED or self.of.get('out') == 'f32'
        self.order = ['a', 'sfa', 'b', 'sfb', *names, *(['c'] if self.c else []), 'd']
        self.arranged = {}
        if self.kind != K_GROUPED:
            self.arranged = {'sfa': 'mn_sfa', 'sfb': 'mn_sfb'}
            self.order += ['mn_sfa'] + (['mn_sfb'] if self.form == BY_ROW else [])
        elif self.turned:
            self.arranged = {'a': 'turned_a', 'b': 'turned_b'}
            self.order += ['turned_a', 'turned_b']

    def number(self, key):
        return int(self.of.get(key, 0))

    def numbers(self, key):
        return [int(one) for one in self.of[key].split(',')]

    def place(self, name, offset=0):
        """Where the kernel finds an operand."""
        name = self.arranged.get(name, name)
        if name not in self.order:
            name = name.replace('mn_', '')
        return f'{self.order.index(name) + 1}+{GUARD + offset}'

    def original(self, name):
        return f'{self.order.index(name) + 1}+{GUARD}'

    def has_work(self):
        return self.m > 0 and self.n > 0

    def passes(self):
        """Launches over memory before the GEMM's."""
        blocks, groups = up(self.k, 128) // 128, self.groups
        if self.kind == K_GROUPED:
            return [['transpose', self.original(name), str(self.k), str(rows),
                     self.place(name)]
                    for name, rows in (('a', self.m), ('b', self.n)) if self.turned]
        lead = groups if self.kind == MASKED else 1
        scaled = [('sfa', self.m)] + ([('sfb', self.n)] if self.form == BY_ROW else [])
        return [['arrange', self.original(name), str(lead), str(rows), str(blocks),
                 self.place(name)] for name, rows in scaled if rows and blocks]

    def maps(self, tile, cluster):
        """{(name, group): words}."""
        height, width = tile
        own_rows = self.m * (self.groups if self.kind in (MASKED, K_GROUPED) else 1)
        size, d_type = (4, FLOAT32) if self.is_f32 else (2, BFLOAT16)
        stride = (self.number('d_stride') or self.n) * size
        made = {}
        if self.form == BY_ROW or not self.is_f32:
            made['d', 0] = ('d', 0, d_type, own_rows, self.n, stride, 64, 128 // size,
                            SWIZZLE_128)
        if self.c:
            made['c', 0] = ('c', 0, FLOAT32, own_rows, self.n, self.n * 4, height, 32,
                            SWIZZLE_128)
        if self.k:
            made.update(self.operand_maps(height // cluster, width))
            made.update(self.scale_maps(height, width))
        return {key: [self.place(name, offset), *map(str, words)]
                for key, (name, offset, *words) in made.items()}

    def operand_maps(self, a_box, b_box):
        if self.kind != K_GROUPED:
            a_rows = self.m * (self.groups if self.kind == MASKED else 1)
            strides = [self.number(f'{name}_stride') or self.k for name in 'ab']
            return {('a', 0): ('a', 0, UINT8, a_rows, self.k, strides[0], a_box, 128,
                               SWIZZLE_128),
                    ('b', 0): ('b', 0, UINT8, self.n * self.groups, self.k, strides[1],
                               b_box, 128, SWIZZLE_128)}
        made, before = {}, 0
        for group, k in enumerate(self.group_k):
            for name, rows, box in ('a', self.m, a_box), ('b', self.n, b_box):
                if k:
                    made[f'group_{name}', group] = (name, rows * before, UINT8, rows, k,
                                                    k, box, 128, SWIZZLE_128)
            before += k
        return made

    def scale_maps(self, height, width):
        blocks = up(self.k, 128) // 128
        lead = self.groups if self.kind == MASKED else 1
        made = {('sfa', 0): ('sfa', 0, FLOAT32, blocks * lead, self.m, up(self.m, 4) * 4,
                             1, height, 0)}
        if self.form == BY_ROW:
            made['sfb', 0] = ('sfb', 0, FLOAT32, blocks, self.n, up(self.n, 4) * 4, 1,
                              width, 0)
        return made

    def arguments(self):
        layout = '0+0' if self.kind == DENSE else self.place('layout')
        listed = {MASKED: 'masked_m', K_GROUPED: 'ks'}.get(self.kind)
        return {'m': self.m, 'n': self.n, 'k_blocks': up(self.k, 128) // 128,
                'groups': self.groups, 'd_is_f32': int(self.is_f32),
                'has_c': int(self.c), 'kind': self.kind,
                'd_stride': self.number('d_stride') or self.n, 'd': self.place('d'),
                'sfb': self.place('sfb'),
                'layout': layout + (':' + self.of[listed] if listed else '')}


class Launches(HostTest):
    def check(self, case, options='', tile=None, cluster=None):
        meaning = Meaning(case)
        with self.subTest(case + options):
            found = self.verify(case, options)
            self.assertEqual(found['status'], 'ran', found.get('message'))
            lines = self.recorded()
            before = [words for words in lines if words[0] in ('arrange', 'transpose')]
            self.assertEqual(before, meaning.passes())
            lines = lines[len(before):]
            if not meaning.has_work():
                self.assertEqual(lines, [])
                return
            self.assertEqual([words[0] for words in lines[:3]],
                             ['launch', 'kernel', 'arguments'])
            launch, kernel, given = (
                dict(word.split('=') for word in words if '=' in word)
                for words in lines[:3])
            found_tile = tuple(map(int, lines[1][1].split('x')))
            found_cluster = int(launch['cluster'])
            self.check_launch(meaning, launch, kernel, found_tile)
            self.assertIn(tile, (None, found_tile))
            self.assertIn(cluster, (None, found_cluster))
            self.assertEqual(int(given.pop('cluster')), found_cluster)
            self.assertGreater(int(given.pop('band')), 0)
            self.assertEqual(given, {key: str(value) for key, value in
                                     meaning.arguments().items()})
            maps = {(words[1], int(words[2])): words[3:] for words in lines[3:]}
            self.assertEqual(len(maps), len(lines) - 3)
            self.assertEqual(maps, meaning.maps(found_tile, found_cluster))

    def check_launch(self, meaning, launch, kernel, tile):
        cluster = int(launch['cluster'])
        types = ''.join(str(int(meaning.of.get(f'{name}_format') == 'e5m2'))
                        for name in 'ab')
        self.assertEqual((kernel['form'], kernel['types'], kernel['threads']),
                         (str(meaning.form), types, launch['block']))
        self.assertEqual(int(launch['grid']) % cluster, 0)
        self.assertIn(int(launch['grid']), range(1, MULTIPROCESSORS + 1))
        # Three stages of a's and b's tiles, at least.
        self.assertGreaterEqual(int(launch['shared']), 3 * 128 * sum(tile))
        self.assertLessEqual(int(launch['shared']), MOST_SHARED)
        if meaning.kind == CONTIGUOUS:  # its groups begin at multiples of 128 rows
            self.assertLessEqual(tile[0], 128)

    def test_drawn_cases(self):
        for operation in ('fp8_gemm_nt', 'm_grouped_fp8_gemm_nt_contiguous',
                          'm_grouped_fp8_gemm_nt_masked',
                          'k_grouped_fp8_gemm_nt_contiguous',
                          'k_grouped_fp8_gemm_tn_contiguous'):
            done = run('list', 'cases', '--op', operation, '--count', 40, '--seed', 11)
            cases = [line for line in done.stdout.splitlines()
                     if line.startswith(operation + ' ') and not
                     re.search(' recipe=(tensor|mx)', line)]
            self.assertGreaterEqual(len(cases), 8)
            for case in cases[:8]:
                self.check(case)

    def test_every_form_with_every_cluster(self):
        strided = ' a_stride=288 b_stride=320 d_stride=64'
        for case in *ALL, ONE + strided, F32 + strided, ONTO_C + strided, \
                ONE + ' a_format=e5m2', ROWS + ' b_format=e5m2':
            height, width = tiles(case)[-1]
            for cluster in 1, 2:
                self.check(case, f',tile={height}x{width},cluster={cluster}',
                           (height, width), cluster)
            self.check(case)

    def test_every_kernel(self):
        for case in ONE, ONTO_C:
            self.assertGreater(len(tiles(case)), 1)
            for height, width in tiles(case):
                for cluster in 1, 2:
                    self.check(case, f',tile={height}x{width},cluster={cluster}',
                               (height, width), cluster)

    def test_sizes_at_their_edges(self):
        for case in ('fp8_gemm_nt m=0 n=24 k=272', 'fp8_gemm_nt m=5 n=0 k=272',
                     'fp8_gemm_nt m=5 n=24 k=0', ONTO_C.replace('k=272', 'k=0'),
                     'm_grouped_fp8_gemm_nt_contiguous group_m=0,0 n=24 k=272',
                     MASKED_CASE.replace('m_max=256', 'm_max=0').replace('9,0,200',
                                                                        '0,0,0'),
                     NT.replace('128,0,256', '0,0'), TN.replace('m=128', 'm=0')):
            self.check(case)


class Replays(HostTest):
    def test_a_graph_is_captured_once_and_replayed_five_times(self):
        found = self.verify(MASKED_CASE, ',kernel=replay')
        self.assertEqual(found['status'], 'ran', found.get('message'))
        lines = self.recorded()
        steps = [words[0] for words in lines if words[0] not in ('map', 'arguments')]
        self.assertEqual(steps, ['arrange', 'launch', *['graph', 'kernel'] * 5])
        masks = [word.split(':')[1] for words in lines if words[0] == 'arguments'
                 for word in words if word.startswith('layout=')]
        # None, all, the groups' masks the other way round, half of each, and its own.
        self.assertEqual(masks, ['0,0,0', '256,256,256', '200,0,9', '5,0,100', '9,0,200'])

    def test_an_ordinary_launch_can_be_captured(self):
        for case in ALL:
            found = self.verify(case, ',graph=1')
            self.assertEqual(found['status'], 'ran', found.get('message'))
            steps = [words[0] for words in self.launches() if words[0] != 'transpose']
            self.assertEqual(steps, ['launch', 'graph', 'kernel'])


if __name__ == '__main__':
    unittest.main()
