# SPDX-License-Identifier: MIT
"""The importer of flashinfer-bench workloads: what becomes of each kind, and what is
refused or skipped."""
import json
import os
import struct
import subprocess
import sys
import unittest

from assay_tool import ROOT, ToolTest, results, run

import safetensors_file

DECODE = 'mla_paged_decode_h16_ckv512_kpe64_ps1'
PAGED = 'mla_paged_decode_h128_ckv512_kpe64_ps64'
SPARSE = 'dsa_sparse_attention_h16_ckv512_kpe64_topk128_ps64'
BLOB = {'type': 'safetensors', 'path': 'blob/tensors.safetensors'}


def integers(*values, shape=None):
    return safetensors_file.tensor('I32', shape or (len(values),),
                                   struct.pack(f'<{len(values)}i', *values))


def stored(key):
    return {**BLOB, 'tensor_key': key}


def workload(definition, axes, uuid='u1', **inputs):
    return json.dumps({'definition': definition, 'solution': None, 'workload': {
        'uuid': uuid, 'axes': axes, 'inputs': inputs}, 'evaluation': None})


class Import(ToolTest):
    def setUp(self):
        super().setUp()
        (self.folder / 'blob').mkdir()
        (self.folder / 'inputs').mkdir()

    def store(self, **tensors):
        safetensors_file.write(self.folder / 'blob' / 'tensors.safetensors', {}, tensors)

    def convert(self, *lines, options=(), environment=None):
        path = self.folder / 'workloads.jsonl'
        path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        root = ('--root', self.folder) if environment is None else ()
        done = subprocess.run(
            [sys.executable, ROOT / 'tools' / 'import_flashinfer_bench.py', path, *root,
             '--suite', self.folder / 'out.cases', *options],
            capture_output=True, encoding='utf-8', check=False,
            env={**os.environ, **(environment or {})})
        suite = self.folder / 'out.cases'
        made = suite.read_text('utf-8').splitlines() if suite.exists() else None
        return done, made

    def check_refused(self, sentence, *lines, options=()):
        done, made = self.convert(*lines, options=options)
        self.assertEqual((done.returncode, made), (2, None), done.stderr)
        self.assertRegex(done.stderr, f'^import_flashinfer_bench: .*{sentence}')
        self.assertEqual(done.stderr.count('\n'), 1)
        self.assertEqual(list((self.folder / 'inputs').iterdir()), [])

    def test_decode_keeps_lengths_heads_and_scale(self):
        self.store(kv_indptr=integers(0, 7, 7, 107), pages=integers(0, 2, 3),
                   last=integers(5, 64))
        done, made = self.convert(
            workload(DECODE, {'batch_size': 3}, kv_indptr=stored('kv_indptr'),
                     sm_scale={'type': 'scalar', 'value': 0.1352337788608801}),
            workload(PAGED, {'batch_size': 2}, 'u2', kv_indptr=stored('pages'),
                     kv_last_page_len=stored('last')),
            options=['--inputs', self.folder / 'inputs'])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(made, [
            'mla_dense_decode b=3 h_q=16 s_k=7,0,100 softmax_scale=0.135233778861 seed=1',
            'mla_dense_decode b=2 h_q=128 s_k=69,64 seed=1'])
        status, cases, _ = results('--suite', self.folder / 'out.cases')
        self.assertEqual((status, [case['passed'] for case in cases]), (0, [True] * 2))

    def test_gemms_keep_their_shape(self):
        lines = (workload('gemm_fp8_N192_K256', {'M': 33}),
                 workload('gemm_fp8_nt_groupwise_n64_k128', {'m': 1}, 'u2'),
                 workload('gemm_n64_k512', {'M': 5}, 'u3'))
        done, made = self.convert(*lines)
        self.assertEqual(made, ['fp8_gemm_nt m=33 n=192 k=256 seed=1',
                                'fp8_gemm_nt m=1 n=64 k=128 seed=1'])
        self.assertIn('skipped 1 of gemm_n64_k512: no FP8', done.stderr)
        _, made = self.convert(*lines, options=['--half-precision-shapes'])
        self.assertEqual(made[2:], ['fp8_gemm_nt m=5 n=64 k=512 seed=1'])
        self.assertEqual(results('--suite', self.folder / 'out.cases')[0], 0)

    def sparse_case(self):
        first = [4000, 17, -1, 100, 4000] + [-1] * 123
        second = [3 * at for at in range(128)]
        self.store(indices=integers(*first, *second, shape=(2, 128)))
        return workload(SPARSE, {'num_tokens': 2, 'num_pages': 63},
                        sparse_indices=stored('indices'),
                        sm_scale={'type': 'scalar', 'value': 0.125}), first + second

    def test_real_indices_become_a_file_of_inputs(self):
        line, indices = self.sparse_case()
        done, made = self.convert(line, options=['--inputs', self.folder / 'inputs'])
        self.assertEqual((done.returncode, made), (0, []), done.stderr)
        path = self.folder / 'inputs' / f'{SPARSE}_u1.safetensors'
        _, tensors = safetensors_file.read(path)
        kept = struct.unpack('<256i', tensors['indices'].data)
        named = sorted(set(indices) - {-1})
        self.assertEqual([named[at] if at >= 0 else -1 for at in kept], indices)
        self.assertEqual(tensors['kv'].shape, (len(named), 1, 576))
        status, cases, _ = results('--recorded', path, '--candidate', 'model')
        self.assertEqual((status, cases[0]['passed']), (0, True))
        self.assertIn('softmax_scale=0.125', cases[0]['case'])
        done = run('verify', '--recorded', path)
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn('inputs alone are enough with --candidate', done.stderr)

    def test_the_same_workload_gives_the_same_file(self):
        line, _ = self.sparse_case()
        contents = []
        for _ in range(2):
            self.convert(line, options=['--inputs', self.folder / 'inputs'])
            path = self.folder / 'inputs' / f'{SPARSE}_u1.safetensors'
            contents.append(path.read_bytes())
            path.unlink()
        self.assertEqual(*contents)

    def test_random_values_are_finite_and_of_both_signs(self):
        line, _ = self.sparse_case()
        self.convert(line, options=['--inputs', self.folder / 'inputs'])
        _, tensors = safetensors_file.read(
            self.folder / 'inputs' / f'{SPARSE}_u1.safetensors')
        q = tensors['q'].data
        words = [word << 16 for word in struct.unpack(f'<{len(q) // 2}H', q)]
        values = [struct.unpack('<f', struct.pack('<I', word))[0] for word in words]
        self.assertTrue(all(abs(value) < 8 for value in values))
        self.assertAlmostEqual(sum(values) / len(values), 0, delta=0.02)

    def test_what_has_no_counterpart_is_counted(self):
        done, made = self.convert(
            workload('rmsnorm_h4096', {'batch_size': 1}),
            workload('rmsnorm_h4096', {'batch_size': 2}, 'u2'),
            workload(DECODE, {'batch_size': 1}, 'u3', kv_indptr={'type': 'random'}))
        self.assertEqual((done.returncode, made), (0, []))
        self.assertIn('skipped 2 of rmsnorm_h4096: no operation', done.stderr)
        self.assertIn('kv_indptr is random', done.stderr)

    def test_the_dataset_is_found_by_the_environment(self):
        self.store(kv_indptr=integers(0, 9))
        line = workload(DECODE, {'batch_size': 1}, kv_indptr=stored('kv_indptr'))
        done, made = self.convert(line, environment={
            'FIB_DATASET_PATH': str(self.folder)})
        self.assertEqual((done.returncode, len(made)), (0, 1), done.stderr)

    def test_bad_workloads_are_refused(self):
        self.store(falls=integers(0, 9, 3), short=integers(1, 2), good=integers(0, 1))
        good = workload('gemm_fp8_N64_K128', {'M': 1})
        decode = {'batch_size': 1}
        text = {'type': 'scalar', 'value': 'x'}
        for sentence, line in (
                ('workloads.jsonl:2: no workload', '{"definition": "x"'),
                ('workloads.jsonl:2: no workload', '[1, 2]'),
                ('workloads.jsonl:2: no workload', '{"definition": "x"}'),
                ('must be texts', '{"definition": 3, "workload": {"uuid": "u", "axes": '
                 '{}, "inputs": {}}}'),
                ('no axis M', workload('gemm_fp8_N64_K128', {})),
                ('no whole number', workload('gemm_fp8_N64_K128', {'M': 1.5})),
                ('no whole number', workload('gemm_fp8_N64_K128', {'M': -1})),
                ('does not ascend', workload(DECODE, decode, kv_indptr=stored('falls'))),
                ('does not ascend', workload(DECODE, decode, kv_indptr=stored('short'))),
                ('no tensor nothing', workload(DECODE, decode,
                                               kv_indptr=stored('nothing'))),
                ('sm_scale is no number', workload(DECODE, decode,
                                                   kv_indptr=stored('good'),
                                                   sm_scale=text))):
            with self.subTest(line):
                self.check_refused(sentence, good, line)

    def test_paths_stay_inside_the_dataset(self):
        for path in '../x.safetensors', '/etc/passwd', 'blob/../../x.safetensors':
            with self.subTest(path):
                entry = {'type': 'safetensors', 'path': path, 'tensor_key': 'a'}
                self.check_refused('outside', workload(DECODE, {}, kv_indptr=entry))

    def test_indices_must_fit(self):
        self.store(indices=integers(*[64] * 128, shape=(1, 128)))
        axes = {'num_tokens': 1, 'num_pages': 1}
        options = ['--inputs', self.folder / 'inputs']
        self.check_refused('beyond the 64 keys', workload(
            SPARSE, axes, sparse_indices=stored('indices')), options=options)
        self.check_refused('has shape', workload(
            SPARSE, {**axes, 'num_tokens': 2}, sparse_indices=stored('indices')),
            options=options)
        self.check_refused('is no folder', options=['--inputs', self.folder / 'none'])


if __name__ == '__main__':
    unittest.main()
