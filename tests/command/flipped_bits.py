# SPDX-License-Identifier: MIT
"""Single flipped bits in recordings: every one in a defined element is found and named,
none outside is reported."""
import random
import unittest

from assay_tool import CORPUS, ToolTest, results, run

import safetensors_file

TILE = 64


def flip(data, element, bit, element_bytes):
    """Flips bit @bit of element @element of the bytearray; the bits before and after."""
    first = element * element_bytes
    before = int.from_bytes(data[first:first + element_bytes], 'little')
    after = before ^ 1 << bit
    data[first:first + element_bytes] = after.to_bytes(element_bytes, 'little')
    return before, after


class FlippedBits(ToolTest):
    def flip_elements(self, source, name, count, columns=None):
        """A copy of recording @source with one random bit flipped in each of @count
        elements of tensor @name; what to find there, by index."""
        draw = random.Random(11)
        metadata, tensors = safetensors_file.read(source)
        kept = tensors[name]
        element_bytes = safetensors_file.ELEMENT_BYTES[kept.dtype]
        data, stored, wanted = bytearray(kept.data), kept.shape[-1], {}
        cells = [(m, n) for m in range(kept.shape[0]) for n in columns or range(stored)]
        for m, n in draw.sample(cells, count):
            before, after = flip(data, m * stored + n, draw.randrange(8 * element_bytes),
                                 element_bytes)
            digits = 2 * element_bytes
            wanted[m, n] = (f'0x{after:0{digits}x}', f'0x{before:0{digits}x}',
                            f'tile {m // TILE},{n // TILE}')
        tensors[name] = safetensors_file.tensor(kept.dtype, kept.shape, bytes(data))
        path = self.folder / 'flipped.safetensors'
        safetensors_file.write(path, metadata, tensors)
        return path, wanted

    def check_all_found(self, source, name, output_index):
        path, wanted = self.flip_elements(
            CORPUS / f'recorded/{source}.safetensors.zst', name, 100)
        status, cases, _ = results('--recorded', path)
        self.assertEqual(status, 1)
        output = cases[output_index]['outputs'][0]
        self.assertEqual(output['differ'], 100)
        found = {tuple(one['index']): (one['candidate'], one['reference'], one['place'])
                 for one in output['differences']}
        self.assertEqual(found, wanted)
        others = [case['verdict'] for i, case in enumerate(cases) if i != output_index]
        self.assertEqual(others, ['equal'] * len(others))

    def test_100_flips_in_a_bf16_output_are_named_with_bits_and_tile(self):
        self.check_all_found('deepgemm_many_b', '0/d', 0)

    def test_100_flips_in_an_f32_output_are_named_with_bits_and_tile(self):
        self.check_all_found('deepgemm_many_b', '1/d', 1)

    def test_each_single_flip_fails_the_run(self):
        source = CORPUS / 'recorded/deepgemm_many_c.safetensors.zst'
        metadata, tensors = safetensors_file.read(source)
        name = 'd' if 'd' in tensors else '0/d'
        draw = random.Random(5)
        for bit in range(16):
            kept = tensors[name]
            data = bytearray(kept.data)
            element = draw.randrange(len(data) // 2)
            flip(data, element, bit, 2)
            changed = {**tensors, name: safetensors_file.tensor(kept.dtype, kept.shape,
                                                                bytes(data))}
            path = self.folder / f'bit{bit}.safetensors'
            safetensors_file.write(path, metadata, changed)
            status, cases, _ = results('--recorded', path)
            output = cases[0]['outputs'][0]
            self.assertEqual((status, output['differ'], output['worst']['index']),
                             (1, 1, [0, element]), f'bit {bit}')

    def test_flips_in_row_padding_are_not_reported(self):
        source = self.record('fp8_gemm_nt m=70 n=72 k=160 d_stride=96 seed=3')
        path, wanted = self.flip_elements(source, 'd', 100, columns=range(72, 96))
        self.assertEqual(len(wanted), 100)
        status, cases, _ = results('--recorded', path)
        self.assertEqual((status, cases[0]['verdict']), (0, 'equal'))
        path, wanted = self.flip_elements(source, 'd', 100, columns=range(72))
        status, cases, _ = results('--recorded', path)
        self.assertEqual((status, cases[0]['outputs'][0]['differ']), (1, 100))

    def test_a_flip_in_an_input_is_a_different_case(self):
        path, _ = self.flip_elements(CORPUS / 'recorded/deepgemm_many_c.safetensors.zst',
                                     'a', 1)
        status, cases, _ = results('--recorded', path)
        self.assertEqual(status, 1)
        self.assertGreater(cases[0]['outputs'][0]['differ'], 100)

    def test_the_shipped_example_fails_and_names_its_element(self):
        done = run('verify', '--recorded', CORPUS / 'examples')
        self.assertEqual(done.returncode, 1)
        for word in ('[20, 100]', '0xc3d5', '0xc3c5', 'tile 0,1', '1 differs',
                     'repeat: assay verify'):
            self.assertIn(word, done.stdout)

    def test_the_readme_shows_this_very_output(self):
        path = 'corpus/examples/flipped_bit.safetensors.zst'
        done = run('verify', '--recorded', path, cwd=CORPUS.parent)
        command = f'$ build/verify/assay verify --recorded {path}\n'
        readme = (CORPUS.parent / 'README.md').read_text(encoding='utf-8')
        self.assertIn(command + done.stdout + '```', readme)


if __name__ == '__main__':
    unittest.main()
