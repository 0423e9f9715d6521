# SPDX-License-Identifier: MIT
"""Backend cuda: which library it takes. A plugin in plain C stands in for the kernels,
and one on a stand-in for the CUDA runtime shows that options arrive."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import cuda_plugin
from assay_tool import TOOL, ToolTest, run

EXAMPLE = pathlib.Path(os.environ['ASSAY_PLUGINS']) / 'example.so'
CASE = 'fp8_gemm_nt m=5 n=24 k=128 recipe=tensor out=f32 seed=1'
BLOCKS = 'fp8_gemm_nt m=5 n=24 k=128 seed=1'
faults = None


def setUpModule():
    global faults
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    faults = cuda_plugin.compiled(cuda_plugin.FAULTS, pathlib.Path(folder.name))


class Library(ToolTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ}
        self.environment.pop('ASSAY_CUDA_LIBRARY', None)

    def verify(self, *arguments, tool=None):
        command = ['verify', *arguments, '--check', 'bitwise,bound']
        if not tool:
            return run(*command, env=self.environment)
        return subprocess.run([tool, *command], env=self.environment,
                              capture_output=True, encoding='utf-8')

    def refuses(self, words, *arguments, tool=None):
        done = self.verify(CASE, *arguments, tool=tool)
        self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)

    def tree(self):
        """A build folder of its own: the tool, and a place for the library."""
        for name in 'verify', 'gpu':
            (self.folder / name).mkdir()
        tool = self.folder / 'verify' / 'assay'
        shutil.copy(TOOL, tool)
        return tool, self.folder / 'gpu' / 'libassay_cuda.so'

    def test_it_is_listed(self):
        self.assertRegex(run('list', 'backends').stdout,
                         r'\n *cuda:\[option=value,...\] +this project')

    def test_the_variable_names_it(self):
        self.environment['ASSAY_CUDA_LIBRARY'] = str(EXAMPLE)
        for candidate in 'cuda', 'cuda:', 'cuda:mode=honest', 'cuda:mode=honest,rows=5':
            done = self.verify(BLOCKS, '--candidate', candidate)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn('1 passed', done.stdout)

    def test_options_arrive(self):
        self.environment['ASSAY_CUDA_LIBRARY'] = str(faults)
        done = self.verify(CASE, '--candidate', 'cuda:poke=d,at=-3,guard=512')
        self.assertEqual(done.returncode, 3)
        self.assertIn('before the beginning of output d: 1 bytes, the nearest at a '
                      'distance of 2', done.stdout)
        self.environment['ASSAY_CUDA_LIBRARY'] = str(EXAMPLE)
        done = self.verify(BLOCKS, '--candidate', 'cuda:mode=fail')
        self.assertEqual(done.returncode, 3)
        self.assertIn('the launch gave error 700', done.stdout)

    def test_a_claim_of_numerics_must_be_kept_to_the_bit(self):
        self.environment['ASSAY_CUDA_LIBRARY'] = str(EXAMPLE)
        done = self.verify('fp8_gemm_nt m=64 n=64 k=1024 seed=1', '--candidate',
                           'cuda:mode=false-claim')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn('FAILED bounded', done.stdout)

    def test_it_may_be_the_reference(self):
        self.environment['ASSAY_CUDA_LIBRARY'] = str(EXAMPLE)
        done = self.verify(BLOCKS, '--candidate', f'plugin:{EXAMPLE}', '--reference',
                           'oracle,cuda:mode=honest')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_build_folder_has_it(self):
        tool, library = self.tree()
        self.refuses(f'finds neither {library} nor /', '--candidate', 'cuda', tool=tool)
        shutil.copy(EXAMPLE, library)
        done = self.verify(BLOCKS, '--candidate', 'cuda', tool=tool)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_variable_comes_first(self):
        tool, library = self.tree()
        shutil.copy(EXAMPLE, library)
        missing = self.folder / 'none.so'
        self.environment['ASSAY_CUDA_LIBRARY'] = str(missing)
        self.refuses(f'ASSAY_CUDA_LIBRARY {missing} cannot be opened: No such file',
                     '--candidate', 'cuda', tool=tool)

    def test_what_is_no_library(self):
        tool, library = self.tree()
        library.write_text('no library')
        self.refuses('cannot be loaded as a plugin', '--candidate', 'cuda', tool=tool)
        self.environment['ASSAY_CUDA_LIBRARY'] = '/dev/null'
        self.refuses('cannot be loaded as a plugin', '--candidate', 'cuda')

    def test_what_are_no_options(self):
        self.environment['ASSAY_CUDA_LIBRARY'] = str(EXAMPLE)
        for text, word in (('cuda:mine.so', 'mine.so'), ('cuda:guard', 'guard'),
                           ('cuda:=1', '=1'), ('cuda:guard=0,,a=1', ''),
                           ('cuda:guard=0,graph', 'graph')):
            self.refuses(f"takes options, not '{word}'", '--candidate', text)
        self.refuses("did you mean 'cuda'", '--candidate', 'cude')


if __name__ == '__main__':
    unittest.main()
