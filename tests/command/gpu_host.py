# SPDX-License-Identifier: MIT
"""The host code of gpu/'s GEMMs, on stand-ins for CUDA: what its tests share."""
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from assay_tool import ROOT, ToolTest, results

FLAGS = ['-std=c++17', '-Wall', '-Wextra', '-Wshadow', '-Wno-unknown-pragmas',
         '-Wno-psabi', '-Werror', '-O0', '-g', '-fPIC', '-include',
         ROOT / 'tests' / 'gpu' / 'gemm_on_host.cpp', '-I', ROOT, '-I',
         ROOT / 'verify' / 'plugin', '-I', ROOT / 'tests' / 'verify' / 'fake_cuda']
DENSE, CONTIGUOUS, MASKED, K_GROUPED = range(4)
BY_BLOCK, BY_ROW = 0, 1  # scales of b: 1d2d, 1d1d
ONE = 'fp8_gemm_nt m=5 n=24 k=272 seed=1'
F32 = ONE + ' out=f32'
ROWS = ONE + ' recipe=1d1d out=f32'
ONTO_C = ROWS + ' c=1'
CONTIGUOUS_CASE = 'm_grouped_fp8_gemm_nt_contiguous group_m=3,0,130 n=24 k=272'
MASKED_CASE = ('m_grouped_fp8_gemm_nt_masked groups=3 m_max=256 n=136 k=272 '
               'masked_m=9,0,200')
NT = 'k_grouped_fp8_gemm_nt_contiguous m=128 n=24 ks=128,0,256'
TN = NT.replace('_nt_', '_tn_')
ALL = ONE, F32, ROWS, ONTO_C, CONTIGUOUS_CASE, MASKED_CASE, NT, TN
built = {}


def build_host():
    """For setUpModule: the plugin and gemm_calls.cpp, without a GPU; meson built them."""
    path = os.environ.get('ASSAY_GPU_ON_HOST')
    if not path:
        folder = tempfile.TemporaryDirectory()
        unittest.addModuleCleanup(folder.cleanup)
        path = folder.name
        build(path)
    path = pathlib.Path(path)
    built.update(plugin=path / 'gemm_on_host.so', calls=path / 'gemm_calls')


def build(folder, depfile=os.devnull):
    sources = [ROOT / 'gpu' / 'plugin.cu', *sorted((ROOT / 'gpu' / 'gemm').glob('*.cu')),
               ROOT / 'tests' / 'gpu' / 'gemm_parts_on_host.cpp']
    program = ROOT / 'tests' / 'gpu' / 'gemm_calls.cpp'
    plugin, calls = f'{folder}/gemm_on_host.so', f'{folder}/gemm_calls'
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            *objects, main = pool.map(lambda source: compiled(source, path),
                                      [*sources, program])
        compiler('-shared', '-o', plugin, *objects)
        compiler('-o', calls, main, *objects)
        rules = [rule.read_text(encoding='utf-8') for rule in path.glob('*.d')]
    needed = ' '.join(rule.split(':', 1)[1].replace('\\\n', ' ').strip()
                      for rule in rules)
    pathlib.Path(depfile).write_text(f'{plugin} {calls}: {needed}\n', encoding='utf-8')


def compiler(*arguments):
    words = shlex.split(os.environ.get('ASSAY_CXX', 'c++'))
    subprocess.run([*words, *arguments], check=True)


def compiled(source, folder):
    target = folder / f'{source.name}.o'
    compiler('-c', '-MMD', '-o', target, *FLAGS, '-x', 'c++', source)
    return target


def tiles(case):
    """[(rows, columns)] of the kernels in gpu/gemm's tables that a case can have."""
    form = '1d1d' if 'recipe=1d1d' in case or case.startswith('k_') else '1d2d'
    name = 'e5m2' if 'e5m2' in case else form
    table = (ROOT / 'gpu' / 'gemm' / f'kernels_{name}.cu').read_text(encoding='utf-8')
    found = re.findall(rf'row<shape<(\d+), (\d+), SCALE_{form.upper()}\b', table)
    highest = 128 if case.startswith('m_grouped_fp8_gemm_nt_contiguous') else 256
    return [(int(height), int(width)) for height, width in found
            if int(height) <= highest]


def up(value, unit):
    return -(-value // unit) * unit


class HostTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.records = self.folder / 'records'
        os.environ['FAKE_CUDA_RECORD'] = str(self.records)
        for name in 'FAKE_CUDA', 'FAKE_CUDA_MISALIGN', 'FAKE_CUDA_RECORD':
            self.addCleanup(os.environ.pop, name, None)

    def recorded(self):
        """What was recorded since the last time, words by words."""
        if not self.records.exists():
            return []
        text = self.records.read_text(encoding='utf-8')
        self.records.unlink()
        return [line.split() for line in text.splitlines()]

    def launches(self):
        """Of anything at all."""
        return [words for words in self.recorded()
                if words[0] in ('launch', 'kernel', 'graph', 'transpose')]

    def verify(self, case, options=''):
        self.recorded()
        _, cases, _ = results(case, '--candidate', f'plugin:{built["plugin"]}{options}',
                              '--check', 'bitwise')
        self.assertEqual(len(cases), 1, case)
        self.assertNotIn('left behind', cases[0].get('output', ''))
        return cases[0]

    def refused(self, case, words, options='', status='unsupported', **environment):
        """The case ends with that one sentence, and nothing was launched."""
        with self.subTest(case + options, **environment):
            os.environ.update(environment)
            found = self.verify(case, options)
            for name in environment:
                del os.environ[name]
            self.assertEqual(found['status'], status, found.get('message'))
            self.assertTrue(found['message'].endswith(words) or
                            re.search(words + '$', found['message']), found['message'])
            self.assertEqual(self.launches(), [])

    def runs(self, case, options='', **environment):
        with self.subTest(case + options, **environment):
            os.environ.update(environment)
            found = self.verify(case, options)
            for name in environment:
                del os.environ[name]
            self.assertEqual(found['status'], 'ran', found.get('message'))
            self.assertEqual([words[0] for words in self.launches()
                              if words[0] != 'transpose'], ['launch', 'kernel'])

    def call(self, *lines):
        """Answers of gemm_calls.cpp to lines of words."""
        done = subprocess.run([built['calls']], capture_output=True, encoding='utf-8',
                              input=''.join('\t'.join(map(str, line)) + '\n'
                                            for line in lines), check=True)
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(lines), done.stderr)
        return [answer.rstrip() for answer in answers]

    def claims(self, operation, *pairs, options=''):
        """(tensors, what is said about them) of each; '' is for what is let through."""
        answers = self.call(*(('claim', operation, options, *tensors)
                              for tensors, _ in pairs))
        for answer, (tensors, words) in zip(answers, pairs):
            with self.subTest(operation, tensors=tensors):
                self.assertEqual(answer, f'claim 1 {words}' if words else 'claim 0')
        self.assertEqual(self.recorded(), [])


if __name__ == '__main__':
    build(*sys.argv[1:])
