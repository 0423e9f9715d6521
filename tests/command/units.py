# SPDX-License-Identifier: MIT
"""Hardware units as operations: their recordings, random cases, and what is refused."""
import subprocess
import sys
import unittest

from assay_tool import CORPUS, ROOT, ToolTest, results, run

import safetensors_file

RECORDED = CORPUS / 'recorded'
UNITS = CORPUS / 'units'


def tool(name, *arguments):
    return subprocess.run([sys.executable, ROOT / 'tools' / name, *map(str, arguments)],
                          capture_output=True, encoding='utf-8', check=False, timeout=300)


class Units(ToolTest):
    def test_recorded_outputs_are_all_there_and_equal(self):
        for stem, cases, elements in (('wgmma_fp8', 24, 163840), ('wgmma_bf16', 7, 6144),
                                      ('wgmma_f16', 4, 4096), ('wgmma_tf32', 4, 4096),
                                      ('unary', 8, 8 * 7087)):
            status, found, summary = results('--recorded',
                                             RECORDED / f'{stem}.safetensors.zst')
            self.assertEqual((status, len(found)), (0, cases), stem)
            self.assertEqual({case['verdict'] for case in found}, {'equal'}, stem)
            counted = sum(case['outputs'][0]['elements'] for case in found)
            self.assertEqual(counted, elements)
            self.assertEqual(summary['indecisive'], 0)

    def test_recordings_are_what_the_importers_make(self):
        made = self.folder / 'unary.safetensors.zst'
        done = tool('import_unary_samples.py', UNITS / 'unary_samples.csv.zst', '--out',
                    made)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('tanh', done.stderr)
        source = UNITS / 'wgmma_vectors.safetensors.zst'
        if source.exists():
            done = tool('import_wgmma_vectors.py', source, '--recorded', self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        for path in self.folder.iterdir():
            kept = safetensors_file.read(RECORDED / path.name)
            self.assertEqual(safetensors_file.read(path), kept, path.name)

    def test_importers_refuse_what_they_do_not_understand(self):
        bad = self.folder / 'bad'
        bad.write_text('nothing')
        for name, option in (('import_unary_samples.py', '--out'),
                             ('import_wgmma_vectors.py', '--recorded')):
            for source in (bad, self.folder / 'missing'):
                done = tool(name, source, option, self.folder / 'out')
                self.assertEqual(done.returncode, 2, name)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_flipped_bit_of_a_recording_is_found(self):
        for stem, name in (('wgmma_fp8', '5/d'), ('wgmma_tf32', '0/d'), ('unary', '6/y')):
            source = RECORDED / f'{stem}.safetensors.zst'
            metadata, tensors = safetensors_file.read(source)
            dtype, shape, data = tensors[name]
            data = bytearray(data)
            data[0] ^= 1
            tensors[name] = safetensors_file.tensor(dtype, shape, bytes(data))
            path = self.folder / 'flipped.safetensors'
            safetensors_file.write(path, metadata, tensors)
            status, cases, _ = results('--recorded', path)
            differ = [case['outputs'][0]['differ'] for case in cases]
            self.assertEqual((status, sum(differ)), (1, 1), stem)
            self.assertEqual(differ.index(1), int(name.split('/')[0]))

    def test_random_cases_hold(self):
        for operation in ('wgmma', 'sfu', 'convert'):
            suite = run('list', 'cases', '--op', operation, '--count', 150, '--seed',
                        11).stdout
            status, cases, _ = results('--suite', '-', text=suite)
            self.assertEqual((status, len(cases)), (0, 150), operation)

    def test_small_budgets_still_give_cases(self):
        for operation in ('wgmma', 'sfu', 'convert'):
            done = run('list', 'cases', '--op', operation, '--count', 30,
                       '--multiply-adds', 1024)
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 30))

    def test_the_oracle_alone_gives_exact_results_to_the_bit(self):
        for case in ('sfu function=ex2 count=300', 'sfu function=lg2 count=300',
                     'sfu function=rcp count=300', 'sfu function=rsqrt count=300',
                     'convert to=e5m2 count=300', 'wgmma blocks=1 steps=3',
                     'wgmma blocks=1 steps=3 a_format=tf32 b_format=tf32'):
            status, cases, _ = results(f'{case} data=exact', '--candidate', 'oracle',
                                       '--require', 'equal')
            self.assertEqual((status, cases[0]['verdict']), (0, 'equal'), case)

    def test_mma_sync_is_another_unit_for_fp8_only(self):
        for formats, verdict in (('e4m3', 'bounded'), ('bf16', 'equal')):
            case = f'wgmma blocks=1 steps=4 a_format={formats} b_format={formats}'
            _, cases, _ = results(case, '--candidate', 'model:hopper-mma')
            found = cases[0]['outputs'][0]
            if verdict == 'equal':
                self.assertEqual(found['differ'], 0)
            else:
                self.assertGreater(found['differ'], 0)

    def test_what_makes_no_sense_is_refused(self):
        for case, word in (
                ('wgmma blocks=1 steps=1 a_format=bf16', 'a_format=bf16'),
                ('wgmma blocks=1 steps=1 a_format=bf16 b_format=f16', 'same'),
                ('wgmma blocks=1 steps=1 n=12', 'multiple of 8'),
                ('wgmma blocks=0 steps=1', 'blocks=0'),
                ('wgmma blocks=1 steps=3000 data=exact', '2000'),
                ('wgmma blocks=1 steps=1 as=unit=volta', 'volta'),
                ('wgmma blocks=1 steps=1 data=recorded', '--recorded'),
                ('sfu count=3', 'function'), ('sfu function=tanh count=3', 'ex2'),
                ('sfu function=ex2 count=3 data=cancel', 'products'),
                ('sfu function=ex2 count=3 data=ties', 'normal'),
                ('sfu function=ex2 count=0', 'count=0'),
                ('convert count=3', 'to'), ('convert to=f32 count=3', 'bf16'),
                ('convert to=e4m3 count=3 data=cancel', 'sums')):
            done = run('verify', case)
            self.assertEqual(done.returncode, 2, case)
            self.assertIn(word, done.stderr, case)


if __name__ == '__main__':
    unittest.main()
