# SPDX-License-Identifier: MIT
"""The quantisers, scale layouts and transpositions of gpu/ on the host, thread by thread:
equal to the model to the bit, on tails and unaligned rows, too."""
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from assay_tool import ROOT, ToolTest, results, run

# A GPU ends a kernel that stores two words where it must not; so does this.
ALIGNED = ['-fsanitize=alignment', '-fsanitize-undefined-trap-on-error']
LAUNCH = re.compile(r'(\w+)<<<(.*?)>>>\(', re.DOTALL)
FLAGS = ['-std=c++17', '-Wall', '-Wextra', '-Wno-unknown-pragmas', '-Werror', '-O1', '-g',
         '-ffp-contract=off', '-fPIC', '-include',
         ROOT / 'tests' / 'gpu' / 'block_on_host.h', '-I', ROOT, '-I',
         ROOT / 'verify' / 'plugin', '-I', ROOT / 'tests' / 'verify' / 'fake_cuda']
built = {}


def setUpModule():
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    path = pathlib.Path(folder.name)
    quantise, scales, transpose = (translated(name, path) for name in
                                   ('quantise', 'scale_layout', 'transpose'))
    tests = ROOT / 'tests' / 'gpu'
    built['plugin'] = link(path / 'units.so', '-shared', quantise, scales,
                           tests / 'units_on_host.cpp')
    built['transpose'] = link(path / 'transpose', transpose, scales,
                              tests / 'transpose.cpp')


def translated(name, folder):
    """A .cu file with its launches in plain C++."""
    source = (ROOT / 'gpu' / f'{name}.cu').read_text(encoding='utf-8')
    text, count = LAUNCH.subn(r'host_launch(\1, \2)(', source)
    assert count > 0
    path = folder / f'{name}.cpp'
    path.write_text(text, encoding='utf-8')
    return path


def link(output, *arguments):
    compiler = shlex.split(os.environ.get('ASSAY_CXX', 'c++'))
    subprocess.run([*compiler, *FLAGS, *ALIGNED, '-o', output, *arguments], check=True)
    return output


class Units(ToolTest):
    def verify(self, *cases, check='bitwise,bound,poison'):
        _, found, _ = results(*cases, '--candidate', f'plugin:{built["plugin"]}',
                              '--check', check)
        self.assertEqual(len(found), len(cases))
        return found

    def equal(self, *cases, **options):
        for case in self.verify(*cases, **options):
            with self.subTest(case['case']):
                self.assertEqual((case['status'], case['verdict']), ('ran', 'equal'),
                                 case.get('message'))

    def drawn(self, operation, count):
        done = run('list', 'cases', '--op', operation, '--count', count, '--seed', 5)
        cases = [line for line in done.stdout.splitlines() if line.startswith(operation)]
        self.assertEqual(len(cases), count)
        self.equal(*cases)

    def test_drawn_cases_equal_the_model(self):
        self.drawn('quantise', 24)
        self.drawn('scale_layout', 24)

    def test_every_quantiser(self):
        self.equal(*(f'quantise m=35 k=170 granularity={granularity} gran_k={gran_k} '
                     f'x_format={x_format} scale={scale} data=special seed={gran_k} '
                     f'as={numerics}'
                     for granularity in ('token', 'block') for gran_k in (32, 128)
                     for x_format in ('bf16', 'f32') for scale in ('f32', 'ue8m0')
                     for numerics in ('deepgemm', 'deepgemm-reciprocal', 'pytorch-cuda')))

    def test_rows_that_are_not_aligned(self):
        self.equal(*(f'quantise m=9 k=264 x_stride={x_stride} q_stride={q_stride} '
                     f'x_format={x_format} granularity={granularity}'
                     for x_stride in (264, 268, 271) for q_stride in (264, 271)
                     for x_format in ('bf16', 'f32')
                     for granularity in ('token', 'block')))

    def test_infinities_and_nan_by_numerics(self):
        bits = 'bits=x.0.3:7f80,x.0.40:ff80,x.0.64:ffc1,x.0.97:8000'
        self.equal(*(f'quantise m=1 k=128 gran_k=32 {bits} scale={scale} as={numerics}'
                     for scale in ('f32', 'ue8m0')
                     for numerics in ('deepgemm', 'pytorch-cuda')))

    def test_the_smallest_scale(self):
        self.equal(*(f'quantise m=2 k=64 data=zero granularity={granularity} '
                     f'scale={scale}' for granularity in ('token', 'block')
                     for scale in ('f32', 'ue8m0')))

    def test_every_conversion(self):
        conversions = (('k_major', 'mn_major'), ('mn_major', 'k_major'),
                       ('k_major', 'packed_ue8m0'), ('mn_major', 'packed_ue8m0'),
                       ('packed_ue8m0', 'k_major'), ('packed_ue8m0', 'mn_major'))
        self.equal(*(f'scale_layout groups={groups} mn=150 k=5000 from={source} '
                     f'to={target}' for source, target in conversions
                     for groups in (0, 3)))
        self.equal(*(f'scale_layout mn=300 k=700 gran_mn=128 from={source} '
                     'to=packed_ue8m0' for source in ('k_major', 'mn_major')))
        self.equal(*(f'scale_layout mn=40 k=1200 data=special unsafe=1 from={source} '
                     f'to={target}' for source, target in conversions))

    def test_repeats_and_properties(self):
        self.equal('quantise m=6 k=96', 'quantise m=20 k=40 granularity=block gran_k=32',
                   'scale_layout mn=5 k=640', check='bitwise,repeat,batch,properties')

    def test_empty_tensors(self):
        self.equal('quantise m=0 k=128', 'quantise m=3 k=0',
                   'quantise m=0 k=0 granularity=block', 'scale_layout mn=0 k=128',
                   'scale_layout mn=3 k=0 groups=2')

    def test_other_numerics_are_not_done(self):
        for case in self.verify('quantise m=2 k=32 as=deepgemm,payload=divided',
                                'quantise m=2 k=32 as=deepgemm-reciprocal,ceil=cuda',
                                'scale_layout mn=2 k=640 to=packed_ue8m0 '
                                'as=deepgemm,byte_order=high-first'):
            self.assertEqual(case['status'], 'unsupported')
            self.assertIn('without knobs', case['message'])

    def test_transpositions(self):
        done = subprocess.run([built['transpose']], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, '0 wrong\n'))


if __name__ == '__main__':
    unittest.main()
