# SPDX-License-Identifier: MIT
"""Everything a user can get wrong ends in one sentence that says what and where, exit
status 2, and nothing written."""
import json
import os
import struct
import subprocess
import unittest

from assay_tool import CORPUS, TOOL, ToolTest, run

GOOD = 'fp8_gemm_nt m=8 n=8 k=16'

# Case line, a word its sentence must contain.
CASE_LINES = [
    ('', 'OPERATION'),
    ('fp8_gemm_tn m=8 n=8 k=16', 'fp8_gemm_nt'),
    ('fp8_gemm_nt', 'm'),
    ('fp8_gemm_nt m=8 n=8', 'k'),
    (GOOD + ' kk=3', 'kk'),
    (GOOD + ' recipie=1d1d', 'recipe'),
    (GOOD + ' m=9', 'm'),
    (GOOD + ' seed', 'seed'),
    (GOOD + ' =3', '='),
    (GOOD + ' seed=', 'seed'),
    (GOOD + ' seed=-1', 'seed'),
    (GOOD + ' seed=18446744073709551616', 'seed'),
    ('fp8_gemm_nt m=-8 n=8 k=16', 'm'),
    ('fp8_gemm_nt m=8.0 n=8 k=16', '8.0'),
    ('fp8_gemm_nt m=0x10 n=8 k=16', '0x10'),
    ('fp8_gemm_nt m=99999999999999999999 n=8 k=16', 'm'),
    ('fp8_gemm_nt m=16777217 n=8 k=16', '16777216'),
    ('fp8_gemm_nt m=16777216 n=16777216 k=16777216', 'memory'),
    ('fp8_gemm_nt m=8 n=9 k=16', 'n=9'),
    ('fp8_gemm_nt m=8 n=8 k=17', 'k=17'),
    (GOOD + ' recipe=2d2d', '1d2d'),
    (GOOD + ' out=f16', 'bf16'),
    (GOOD + ' out=f64', 'f32'),
    (GOOD + ' recipe=1d1d', 'out=f32'),
    (GOOD + ' c=1', 'recipe=1d1d'),
    (GOOD + ' c=2', 'c'),
    (GOOD + ' a_format=fp8', 'e4m3'),
    (GOOD + ' a_stride=8', 'a_stride'),
    (GOOD + ' b_stride=17', 'b_stride'),
    (GOOD + ' d_stride=9', 'd_stride'),
    (GOOD + ' data=gauss', 'normal'),
    (GOOD + ' data=needle', 'it takes normal'),
    (GOOD + ' data=recorded', '--recorded'),
    ('fp8_gemm_nt m=8 n=8 k=32768 data=exact', 'exact'),
    (GOOD + ' as=deepgem-1d2d', 'deepgemm-1d2d'),
    (GOOD + ' as=deepgemm-1d2d,promote=64', 'promote_k'),
    (GOOD + ' as=deepgemm-1d2d,promote_k=100', '128'),
    (GOOD + ' as=deepgemm-1d2d,align_bits=41', '40'),
    (GOOD + ' as=cublaslt-fast', 'recipe=tensor'),
    (GOOD + ' as=deepgemm-1d2d,promote_k=never', 'promote_k'),
    (GOOD + ' a_format=e2m1', 'recipe=mx'),
    (GOOD + ' b_format=e2m1 unsafe=1', 'recipe=mx'),
    (GOOD + ' gran_k=32', 'recipe=mx'),
    (GOOD + ' recipe=1d1d out=f32 gran_k=32 unsafe=1', 'recipe=mx'),
    (GOOD + ' recipe=tensor gran_k=32', 'recipe=mx'),
    (GOOD + ' recipe=mx gran_k=64', '32'),
    (GOOD + ' recipe=mx c=1 out=f32 unsafe=1', 'recipe=1d1d'),
    (GOOD + ' recipe=mx as=deepgemm-1d2d', 'blackwell-mx'),
    (GOOD + ' recipe=mx as=unit=hopper-fp8', 'blackwell-fp8'),
    (GOOD + ' recipe=mx as=promote_k=128', 'promote_k=never'),
    (GOOD + ' recipe=mx as=promotion=separate', 'promotion'),
    (GOOD + ' recipe=mx as=epilogue=reduce', 'epilogue'),
    (GOOD + ' as=blackwell-mx', 'recipe=mx'),
    (GOOD + ' recipe=tensor as=blackwell-mx', 'recipe=mx'),
    (GOOD + ' recipe=tensor as=blackwell-mx,scale_form=product-first', 'recipe=mx'),
    (GOOD + ' as=blackwell-mx,scale_form=product-first,promote_k=128', 'recipe=mx'),
    (GOOD + ' recipe=mx as=deepgemm-1d2d,scale_form=in-operands', 'blackwell-mx'),
    (GOOD + ' as=scale_form=in-operands', 'recipe=mx'),
    (GOOD + ' as=', 'as'),
    (GOOD + ' unsafe=yes', 'unsafe'),
    (GOOD + ' bits=a.0.0', 'bits'),
    (GOOD + ' bits=q.0.0:7f', 'q'),
    (GOOD + ' bits=d.0.0:7f', 'd'),
    (GOOD + ' bits=a.8.0:7f', '8'),
    (GOOD + ' bits=a.0:7f', 'a'),
    (GOOD + ' bits=a.0.0:17f', '0x17f'),
    (GOOD + ' bits=a.0.0:xyz', 'bits'),
    (GOOD + ' seed=1\x1b[31m', 'byte 0x1b'),
    (GOOD + ' s\u00e9ed=1', 'byte 0xc3'),
    (GOOD + ' ' * 5000, '4095'),
]

# Arguments of the command line, a word the sentence must contain.
ARGUMENTS = [
    (['verfy', GOOD], 'verify'),
    (['verify', GOOD, '--frobnicate'], 'frobnicate'),
    (['verify', GOOD, '--candidate', 'modell'], 'model'),
    (['verify', GOOD, '--candidate', 'oracle:x'], 'oracle'),
    (['verify', GOOD, '--candidate', 'model:nonsense'], 'nonsense'),
    (['verify', GOOD, '--candidate', 'recorded'], 'recorded:FILE'),
    (['verify', GOOD, '--candidate', 'recorded:/no/such/file'], '/no/such/file'),
    (['verify', GOOD, '--reference', 'truth'], 'truth'),
    (['verify', GOOD, '--reference', 'model:nonsense'], 'nonsense'),
    (['verify', GOOD, '--check', 'bitwize'], 'bitwise'),
    (['verify', GOOD, '--require', 'perfect'], 'bounded'),
    (['verify', GOOD, '--max-indecisive', 'few'], 'few'),
    (['verify', GOOD, '--json', '/no/such/folder/report.json'], '/no/such/folder'),
    (['verify', '--suite', '/no/such/suite'], '/no/such/suite'),
    (['verify', '--suite', '/'], '/'),
    (['verify', '--recorded', '/no/such/file'], '/no/such/file'),
    (['verify', '--recorded', '/dev/null'], '/dev/null'),
    (['record', GOOD], '--out'),
    (['record', GOOD, '--out', '/no/such/folder'], '/no/such/folder'),
    (['list', 'operation'], 'operations'),
    (['list', 'cases'], '--op'),
    (['list', 'cases', '--op', 'fp8_gemm_nt', '--count', '-1'], '-1'),
    (['list', 'cases', '--op', 'fp8_gemm_nt', '--multiply-adds', '1'], '1024'),
]


def safetensors(header, data=b'', length=None):
    """Bytes of a file with this header, right or wrong."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack('<Q', len(text) if length is None else length) + text + data


def entry(dtype, shape, begin, end):
    return {'dtype': dtype, 'shape': shape, 'data_offsets': [begin, end]}


CASES = {'cases': 'fp8_gemm_nt m=1 n=8 k=16 data=recorded seed=0'}
# A right file: a 16, sfa 4, b 128, sfb 4, d 16 bytes.
RIGHT = {'__metadata__': CASES, 'a': entry('F8_E4M3', [1, 16], 0, 16),
         'sfa': entry('F32', [1, 1], 16, 20), 'b': entry('F8_E4M3', [8, 16], 20, 148),
         'sfb': entry('F32', [1, 1], 148, 152), 'd': entry('BF16', [1, 8], 152, 168)}


def changed(**tensors):
    return safetensors({**RIGHT, **tensors}, bytes(168))


FILES = [
    ('empty', b'', 'header'),
    ('truncated length', b'\1\2\3', 'header'),
    ('huge header', safetensors(b'{}', length=1 << 60), 'header'),
    ('header beyond the file', safetensors(b'{}', length=1000), 'header'),
    ('not JSON', safetensors(b'{]'), 'JSON'),
    ('not an object', safetensors(b'[1]'), 'object'),
    ('a PyTorch file', b'PK\3\4' + bytes(100), 'import_npz'),
    ('truncated data', safetensors(RIGHT, bytes(167)), 'd'),
    ('trailing bytes', safetensors(RIGHT, bytes(169)), 'trailing'),
    ('overlap', changed(sfa=entry('F32', [1, 1], 12, 16)), 'sfa'),
    ('gap', changed(sfb=entry('F32', [1], 144, 148)), 'sfb'),
    ('unknown dtype', changed(a=entry('F4', [1, 16], 0, 16)), 'F4'),
    ('wrong size', changed(a=entry('F8_E4M3', [1, 15], 0, 16)), 'a'),
    ('overflowing shape', changed(a=entry('F8_E4M3', [1 << 62, 1 << 62], 0, 16)), 'a'),
    ('negative shape', changed(a=entry('F8_E4M3', [-1, -16], 0, 16)), 'a'),
    ('wrong dtype', changed(a=entry('U8', [1, 16], 0, 16)), 'F8_E4M3'),
    ('wrong shape', changed(a=entry('F8_E4M3', [16, 1], 0, 16)), 'a'),
    ('no cases', changed(__metadata__={'gpu': 'x'}), 'cases'),
    ('metadata not text', changed(__metadata__={'cases': 3}), 'metadata'),
    ('a bad case line', changed(__metadata__={'cases': 'fp8_gemm_nt m=1'}), 'n'),
    ('a refused case line', changed(__metadata__={
        'cases': 'fp8_gemm_nt m=1 n=7 k=16 data=recorded seed=0'}), 'n=7'),
    ('a tensor of no case', safetensors({
        **{name: value for name, value in RIGHT.items() if name != 'd'},
        '7/d': RIGHT['d']}, bytes(168)), '7/d'),
]


class BadInput(ToolTest):
    def check_refused(self, done, word, what):
        self.assertEqual(done.returncode, 2, f'{what!r}: {done.stdout}{done.stderr}')
        self.assertIn(word, done.stderr, repr(what))
        self.assertNotIn('\x1b', done.stderr)
        self.assertEqual(done.stdout, '', repr(what))

    def test_there_are_enough_of_them(self):
        self.assertGreaterEqual(len(CASE_LINES) + len(ARGUMENTS) + len(FILES), 90)

    def test_case_lines(self):
        for line, word in CASE_LINES:
            report = self.folder / 'report.json'
            done = run('verify', line, '--json', report)
            self.check_refused(done, word, line)
            self.assertEqual(len(done.stderr.splitlines()), 1, line)
            self.assertEqual(list(self.folder.iterdir()), [], line)

    def test_case_lines_in_a_suite_are_named_by_file_and_line(self):
        for line, word in CASE_LINES[1:]:
            done = run('verify', '--suite', '-', text=f'{GOOD}\n\n{line}\n')
            self.check_refused(done, word, line)
            self.assertIn(':3: ', done.stderr, line)

    def test_arguments(self):
        for arguments, word in ARGUMENTS:
            done = run(*arguments, cwd=self.folder)
            self.check_refused(done, word, arguments)
            self.assertEqual(list(self.folder.iterdir()), [], arguments)

    def test_files(self):
        for what, content, word in FILES:
            path = self.folder / 'file.safetensors'
            path.write_bytes(content)
            done = run('verify', '--recorded', path)
            self.check_refused(done, word, what)
            self.assertIn(str(path), done.stderr, what)
            self.assertEqual(len(done.stderr.splitlines()), 1, what)

    def test_a_missing_tensor_is_named(self):
        for name in ('a', 'sfa', 'b', 'sfb', 'd'):
            position, header = 0, {'__metadata__': CASES}
            for key, value in RIGHT.items():
                if key in (name, '__metadata__'):
                    continue
                size = value['data_offsets'][1] - value['data_offsets'][0]
                header[key] = {**value, 'data_offsets': [position, position + size]}
                position += size
            path = self.folder / 'file.safetensors'
            path.write_bytes(safetensors(header, bytes(position)))
            done = run('verify', '--recorded', path)
            self.check_refused(done, f'no tensor {name}:', name)

    def test_the_right_file_is_accepted(self):
        path = self.folder / 'file.safetensors'
        path.write_bytes(safetensors(RIGHT, bytes(168)))
        done = run('verify', '--recorded', path, '--max-indecisive', '1')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_report_that_cannot_be_replaced_keeps_the_old_one(self):
        report = self.folder / 'report.json'
        report.write_text('precious')
        self.assertEqual(run('verify', GOOD + ' n=9', '--json', report).returncode, 2)
        self.assertEqual(report.read_text(), 'precious')

    def test_a_full_disk_is_the_environment_s_failure(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full here')
        with open('/dev/full', 'w', encoding='utf-8') as full:
            done = subprocess.run([TOOL, 'verify', GOOD, '--json', '-'], stdout=full,
                                  stderr=subprocess.PIPE, encoding='utf-8', check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn('writing', done.stderr)

    def test_compressed_garbage_is_refused(self):
        good = (CORPUS / 'recorded/deepgemm_many_c.safetensors.zst').read_bytes()
        for what, content in (('garbage', b'garbage'), ('half', good[:len(good) // 2])):
            path = self.folder / 'file.safetensors.zst'
            path.write_bytes(content)
            self.check_refused(run('verify', '--recorded', path), 'zstd', what)


if __name__ == '__main__':
    unittest.main()
