#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Attention cases that no kernel may be given end with one sentence and status 2 before
any backend runs; with unsafe=1 those whose contents alone are wrong run."""
import unittest

from assay_tool import ToolTest, run

DENSE = 'mla_dense_decode b=2 h_q=16 s_k=100,70 seed=1'
V32 = 'mla_sparse_decode kv=v32 b=1 h_q=64 topk=64 seed=1'
MODEL1 = 'mla_sparse_decode kv=model1 b=1 h_q=64 topk=64 topk_length=3 seed=1'
EXTRA = ('mla_sparse_decode kv=v41 b=1 h_q=64 topk=64 extra_kv=v41_fp4 extra_topk=64 '
         'extra_topk_length=9 seed=1')
PREFILL = 'mla_sparse_prefill s_q=2 h_q=64 s_kv=100 topk=128 topk_length=5 seed=1'

# A case line that is refused, a word that the sentence must contain.
LINES = [
    ('mla_sparse_decode kv=v32 b=1 h_q=64 topk=65', 'multiple of 64'),
    ('mla_sparse_decode kv=v32 b=1 h_q=64 topk=0', 'topk'),
    ('mla_sparse_decode kv=v32 b=1 h_q=65 topk=64', 'h_q'),
    ('mla_sparse_decode kv=v41_fp4 b=1 h_q=64 topk=64', 'kv'),
    ('mla_sparse_decode kv=v32 b=1 h_q=64 topk=64 topk_length=3', 'topk_length'),
    ('mla_sparse_decode kv=model1 b=1 h_q=64 topk=64 topk_length=-3', 'topk_length'),
    ('mla_sparse_prefill s_q=1 h_q=64 s_kv=64 topk=64', 'multiple of 128'),
    ('mla_sparse_prefill s_q=1 h_q=64 s_kv=64 topk=127', 'multiple of 128'),
    ('mla_sparse_prefill s_q=1 h_q=64 s_kv=64 topk=128 invalid=1.5', 'invalid'),
    ('mla_sparse_prefill s_q=1 h_q=64 s_kv=64 topk=128 invalid=1e-1', 'invalid'),
    ('mla_dense_decode b=1 h_q=16 s_k=-5', 's_k'),
    ('mla_dense_decode b=2 h_q=16 s_k=5,6,7', 's_k'),
    ('mla_dense_decode b=1 h_q=16 h_k=3 s_k=5', 'h_k'),
    ('mla_dense_decode b=1 h_q=16 s_k=5 softmax_scale=0.0001', 'softmax_scale'),
    ('mla_dense_decode b=1 h_q=16 s_k=5 softmax_scale=-1', 'softmax_scale'),
    ('mla_dense_decode b=1 h_q=16 s_k=5 data=exact', 'power of two'),
    ('mla_dense_decode b=1 h_q=16 s_k=5 format=e4m3', 'format'),
    ('mla_combine b=1 splits=0', 'splits'),
    ('mla_plan attention=sparse b=1 topk=63', 'topk'),
    ('mla_plan attention=dense b=1 s_k=5 topk=64', 'topk'),
    ('mla_cache_quantise kv=v33 tokens=3', 'v32'),
]

# The same of contents: refused, and run with unsafe=1.
CONTENTS = [
    (DENSE, 'cache_seqlens.0:ffffffff', 'cache_seqlens[0] is -1'),
    (DENSE, 'cache_seqlens.1:7fffffff', 'cache_seqlens[1]'),
    (DENSE, 'block_table.0.1:7fffffff', 'block_table[0, 1]'),
    (DENSE, 'block_table.1.0:ffffffff', 'block_table[1, 0]'),
    (DENSE, 'tile_scheduler_metadata.0.3:40', 'tile_scheduler_metadata'),
    (DENSE, 'num_splits.1:7fffffff', 'num_splits'),
    (V32, 'indices.0.0.3:fffffffe', 'indices[0, 0, 3] is -2'),
    (V32, 'indices.0.0.63:7fffffff', 'indices[0, 0, 63]'),
    (V32, 'num_splits.1:80000000', 'num_splits'),
    (MODEL1, 'topk_length.0:ffffffff', 'topk_length[0] is -1'),
    (MODEL1, 'topk_length.0:41', 'topk_length[0] is 65'),
    (MODEL1, 'indices.0.0.2:80000000', 'indices[0, 0, 2]'),
    (EXTRA, 'extra_topk_length.0:41', 'extra_topk_length[0]'),
    (EXTRA, 'extra_indices_in_kvcache.0.0.1:7fffffff', 'extra_indices_in_kvcache'),
    (PREFILL, 'topk_length.1:81', 'topk_length[1]'),
    (PREFILL, 'topk_length.0:80000000', 'topk_length[0]'),
    ('mla_combine b=1 h_q=8 splits=3 seed=1', 'num_splits.1:2', 'num_splits'),
    ('mla_combine b=1 h_q=8 splits=3 seed=1', 'lseaccum.1.0.0:7fc00000', 'lseaccum'),
    ('mla_plan attention=dense b=2 s_k=9 seed=1', 'cache_seqlens.1:ffffffff',
     'cache_seqlens'),
]


class BadAttention(ToolTest):
    def check_refused(self, done, word, what):
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 2, f'{what}: {said}')
        self.assertIn(word, said, what)

    def test_lines(self):
        for line, word in LINES:
            done = run('verify', line)
            self.check_refused(done, word, line)
            self.assertEqual(len(done.stderr.splitlines()), 1, line)

    def test_contents(self):
        for case, bits, word in CONTENTS:
            line = f'{case} bits={bits}'
            self.check_refused(run('verify', line), word, line)
            done = run('verify', line, '--json', '-', '--max-indecisive', '1')
            self.assertIn('"status":"refused"', done.stdout, line)

    def test_unsafe_cases_run_and_contradict_nothing(self):
        for case, bits, _ in CONTENTS:
            line = f'{case} unsafe=1 bits={bits}'
            done = run('verify', line, '--max-indecisive', '1')
            self.assertEqual(done.returncode, 0, line + done.stdout + done.stderr)

    def test_nothing_is_recorded_of_refused_contents(self):
        for case, bits, word in CONTENTS[:3]:
            done = run('record', f'{case} bits={bits}', '--out', self.folder)
            self.check_refused(done, word, case)
            self.assertEqual(list(self.folder.iterdir()), [], case)


if __name__ == '__main__':
    unittest.main()
