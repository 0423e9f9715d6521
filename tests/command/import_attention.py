# SPDX-License-Identifier: MIT
"""The importer of recorded attention kernels: the corpus holds what the sources hold, the
same arrays give the same files, and what is no recording is refused."""
import struct
import subprocess
import sys
import unittest
import zipfile
import zlib

from assay_tool import CORPUS, ROOT, ToolTest

import safetensors_file

DESCRS = {'BF16': '<u2', 'F32': '<f4', 'I32': '<i4', 'U8': '|u1'}
RECORDED = CORPUS / 'recorded'

# CRC-32 of the arrays of the sources as numpy gives their bytes, by recorded file and
# stored tensor; computed without the importer.
SOURCE_SUMS = {
    'flashmla_dense': {
        '0/lse': 0x586bd16a, '0/out': 0xac0e9cd3, '0/q': 0xd27402ea,
        '0/tile_scheduler_metadata': 0x8c53de10,
        '1/tile_scheduler_metadata': 0x8c53de10, '2/lse': 0xf4a354ca,
        '2/out': 0xae661e95, '2/q': 0xef7f54b4, '4/lse': 0x56df1311,
        '4/out': 0x58ae0eb7, '4/q': 0x07661fdc, 'block_table': 0x591f0bd4,
        'cache_seqlens': 0xa6284721, 'k_cache': 0x93123eed, 'num_splits': 0xe55020b2,
        'tile_scheduler_metadata': 0x66e0cd2e},
    'flashmla_dense_many_b': {
        '0/block_table': 0x1c9e1835, '0/k_cache': 0xe7c173d3, '0/lse': 0xf18163e0,
        '0/out': 0x0da58f5d, '0/q': 0x2cd5adaf, 'cache_seqlens': 0xb6a94e89,
        'num_splits': 0x0e7ed613, 'tile_scheduler_metadata': 0x99815f4d},
    'flashmla_dense_many_c': {
        '0/block_table': 0xf6747fd5, '0/k_cache': 0x0e7bd972, '0/lse': 0x52402cdd,
        '0/out': 0xbf880af9, '0/q': 0xb50dfec0, 'cache_seqlens': 0x06f1d80c,
        'num_splits': 0x0517729c, 'tile_scheduler_metadata': 0x32ebd757},
    'flashmla_dense_many_d': {
        '0/block_table': 0x62db0af0, '0/k_cache': 0xaf77bcad, '0/lse': 0x75e6bb8f,
        '0/out': 0xc5fdb66a, '0/q': 0x42300ce7, 'cache_seqlens': 0xcac22150,
        'num_splits': 0x194e77ea, 'tile_scheduler_metadata': 0x44d7e0f1},
    'flashmla_sparse_decode': {
        '0/lse': 0xc038d586, '0/out': 0x2f4d09a2, '0/q': 0xe0435bf8,
        '2/lse': 0xd0daf73c, '2/out': 0x22c53fae, '2/q': 0xe8bd3356,
        '2/tile_scheduler_metadata': 0xf57c1f52,
        '3/tile_scheduler_metadata': 0xf57c1f52, '4/attn_sink': 0x2925d106,
        '4/lse': 0x625767f6, '4/out': 0x034b36fe, '4/q': 0xc767b63d,
        'indices': 0x18b689a2, 'k_cache': 0x8e8a8bc2, 'num_splits': 0xb6925645,
        'tile_scheduler_metadata': 0x3ca196c8},
    'flashmla_sparse_decode_many_m1x': {
        '0/attn_sink': 0x4e68e020, '0/extra_indices_in_kvcache': 0x3b8437fd,
        '0/extra_k_cache': 0x5b833e8c, '0/indices': 0xf618ada6, '0/k_cache': 0x5cebc20f,
        '0/lse': 0xc0e2fb6b, '0/out': 0x0679b098, '0/q': 0xe02d4186,
        'extra_topk_length': 0x426d2f80, 'num_splits': 0xceda7d6c,
        'tile_scheduler_metadata': 0x6c329a0e, 'topk_length': 0x82632a04},
    'flashmla_sparse_decode_many_v32b': {
        '0/attn_sink': 0x52ad2e87, '0/indices': 0x379f6976, '0/k_cache': 0xcffe4efc,
        '0/lse': 0xd75819a9, '0/out': 0x1b97e76a, '0/q': 0xbe0aff83,
        'num_splits': 0x2042dfa8, 'tile_scheduler_metadata': 0xea458028},
    'flashmla_sparse_prefill': {
        '0/lse': 0x5496227b, '0/max_logits': 0xfe44658c, '0/out': 0x1e7f8dee,
        '1/attn_sink': 0x2fcacc14, '1/lse': 0x8cc59973, '1/max_logits': 0xe2204b6a,
        '1/out': 0x9888a13f, '1/topk_length': 0x576e3916, 'indices': 0x1e4da7ad,
        'kv': 0xf0606f58, 'q': 0xe8ef8a3c},
    'flashmla_sparse_prefill_many_a': {
        'attn_sink': 0x30664cca, 'indices': 0x5fa6b82a, 'kv': 0x58c2e7c2,
        'lse': 0x172d8a95, 'max_logits': 0x586e9ad0, 'out': 0x5f938ec3, 'q': 0xc853af67,
        'topk_length': 0x28492269},
    'flashmla_sparse_prefill_many_b': {
        'attn_sink': 0x998c53d0, 'indices': 0x42e47b58, 'kv': 0x96b21eb5,
        'lse': 0xec9cf35e, 'max_logits': 0xfb99d4f0, 'out': 0x0fc2c199, 'q': 0x772c60e5,
        'topk_length': 0x84403746},
}

# Where tensors of case 0 come from: the name of the array, by recorded file and prefix.
MANY = {'q': 'q', 'out': 'out', 'lse': 'lse', 'num_splits': 'num_splits',
        'tile_scheduler_metadata': 'meta'}
ROUND_TRIPS = [
    ('flashmla_dense_many', 'd', {**MANY, 'k_cache': 'kv', 'block_table': 'bt',
                                  'cache_seqlens': 'seqlens'},
     {'causal': ('<i4', (), struct.pack('<i', 1))}, {}),
    ('flashmla_sparse_decode_many', 'm1x',
     {**MANY, 'k_cache': 'kv', 'indices': 'idx', 'attn_sink': 'sink',
      'topk_length': 'topk_length', 'extra_k_cache': 'ekv',
      'extra_indices_in_kvcache': 'eidx', 'extra_topk_length': 'etl'},
     {'scale': ('<f8', (), struct.pack('<d', 0.032352028870043036)),
      'kv_stride0': ('<i8', (), struct.pack('<q', 37440))},
     {'kv': (6, 64, 1, 584), 'ekv': (4, 32, 1, 584)}),
    ('flashmla_sparse_prefill_many', 'b',
     {'q': 'q', 'kv': 'kv', 'indices': 'idx', 'attn_sink': 'sink', 'out': 'out',
      'topk_length': 'topk_length', 'max_logits': 'max_logits', 'lse': 'lse'},
     {'scale': ('<f8', (), struct.pack('<d', 0.09))}, {'kv': (900, 512)}),
]


def npy(descr, shape, data):
    header = str({'descr': descr, 'fortran_order': False, 'shape': shape}).encode()
    header += b' ' * (-(len(header) + 11) % 64) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + data


def write_npz(path, arrays):
    with zipfile.ZipFile(path, 'w') as archive:
        for name, array in arrays.items():
            archive.writestr(name + '.npy', npy(*array))


def import_npz(*arguments):
    return subprocess.run([sys.executable, ROOT / 'tools/import_npz.py', *arguments],
                          capture_output=True, encoding='utf-8', check=False)


def arrays_of(prefix, tensors, names, more, shapes):
    """The arrays that a recorded file was made of."""
    arrays = {f'{prefix}_{name}': array for name, array in more.items()}
    for stored, name in names.items():
        dtype, shape, data = tensors[stored]
        arrays[f'{prefix}_{name}'] = (DESCRS[dtype], shapes.get(name, tuple(shape)), data)
    return arrays


def dense_arrays(causal):
    """A dense call of one request of 3 keys, two heads and one query token, all zeros."""
    def zeros(descr, *shape):
        count = 1
        for n in shape:
            count *= n
        return descr, shape, bytes(count * int(descr[-1]))
    return {'x_q': zeros('<u2', 1, 1, 2, 576), 'x_kv': zeros('<u2', 1, 64, 1, 576),
            'x_bt': zeros('<i4', 1, 1), 'x_seqlens': ('<i4', (1,), struct.pack('<i', 3)),
            'x_out': zeros('<u2', 1, 1, 2, 512), 'x_lse': zeros('<f4', 1, 2, 1),
            'x_meta': zeros('<i4', 132, 8), 'x_num_splits': zeros('<i4', 2),
            'x_causal': ('<i4', (), struct.pack('<i', causal))}


class ImportAttention(ToolTest):
    def test_the_corpus_holds_the_bytes_of_the_sources(self):
        for name, sums in SOURCE_SUMS.items():
            _, tensors = safetensors_file.read(RECORDED / f'{name}.safetensors.zst')
            found = {stored: zlib.crc32(tensor.data)
                     for stored, tensor in tensors.items()}
            self.assertEqual(found, sums, name)

    def test_the_arrays_of_a_recording_give_its_bytes_again(self):
        for stem, prefix, names, more, shapes in ROUND_TRIPS:
            recorded = RECORDED / f'{stem}_{prefix}.safetensors.zst'
            _, tensors = safetensors_file.read(recorded)
            tensors = {name.rsplit('/')[-1]: value for name, value in tensors.items()}
            source = self.folder / f'{stem}.npz'
            write_npz(source, arrays_of(prefix, tensors, names, more, shapes))
            done = import_npz(source, '--out', self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.folder / recorded.name).read_bytes(),
                             recorded.read_bytes(), recorded.name)

    def test_a_call_becomes_an_attention_case_and_the_case_of_its_plan(self):
        source = self.folder / 'one.npz'
        write_npz(source, dense_arrays(0))
        self.assertEqual(import_npz(source, '--out', self.folder).returncode, 0)
        metadata, tensors = safetensors_file.read(self.folder / 'one_x.safetensors.zst')
        self.assertEqual(metadata['cases'].splitlines(), [
            'mla_dense_decode b=1 h_q=2 s_k=3 pages=1 table_columns=1 data=recorded '
            'seed=0',
            'mla_plan b=1 h_q=2 s_k=3 data=recorded seed=0'])
        self.assertEqual(metadata['kernel'], 'FlashMLA dense decode')
        shared = {'cache_seqlens', 'num_splits', 'tile_scheduler_metadata'}
        self.assertEqual({name for name in tensors if '/' not in name}, shared)

    def test_only_what_is_asked_for_is_made(self):
        source = self.folder / 'some.npz'
        arrays = dense_arrays(1)
        arrays.update({'y' + name[1:]: array for name, array in dense_arrays(0).items()})
        write_npz(source, arrays)
        done = import_npz(source, '--out', self.folder, '--only', 'some_y')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in self.folder.glob('*.zst')],
                         ['some_y.safetensors.zst'])
        done = import_npz(source, '--out', self.folder, '--only', 'some_z')
        self.assertEqual(done.returncode, 2)
        self.assertIn('some_z is no recording', done.stderr)
        self.assertIn('some_x, some_y', done.stderr)

    def test_what_is_no_recording_is_refused_with_a_sentence(self):
        good = dense_arrays(0)
        seqlens = ('<i8', (1,), bytes(8))
        for change, word in (
                ({'x_q': None}, 'no known layout'),
                ({'z': good['x_q']}, 'z belongs to no'),
                ({'x_seqlens': seqlens}, '<i8 (1,) where <i4 (1,)'),
                ({'x_meta': ('<i4', (66, 8), bytes(66 * 32))}, '(66, 8)'),
                ({'x_out': ('<u2', (1, 1, 2, 511), bytes(2044))}, '(1, 1, 2, 511)')):
            source = self.folder / 'bad.npz'
            arrays = {**good, **change}
            write_npz(source, {name: array for name, array in arrays.items() if array})
            done = import_npz(source, '--out', self.folder)
            self.assertEqual(done.returncode, 2, change)
            self.assertIn(word, done.stderr)
            self.assertNotIn('Traceback', done.stderr)
            self.assertFalse(list(self.folder.glob('*.zst')))


if __name__ == '__main__':
    unittest.main()
