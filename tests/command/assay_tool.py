# SPDX-License-Identifier: MIT
"""Runs the tool as a user would, for the end-to-end tests."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ.get('ASSAY', str(ROOT / 'build' / 'verify' / 'assay'))
CORPUS = pathlib.Path(os.environ.get('ASSAY_CORPUS', str(ROOT / 'corpus')))

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'tools'))


def run(*arguments, text='', **options):
    """The finished process of one call of the tool."""
    return subprocess.run([TOOL, *map(str, arguments)], input=text, capture_output=True,
                          encoding='utf-8', errors='replace', check=False, timeout=300,
                          **options)


def results(*arguments, text=''):
    """Exit status, case objects and summary of `assay verify ... --json -`."""
    done = run('verify', *arguments, '--json', '-', text=text)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    cases = [line for line in lines if line['type'] == 'case']
    return done.returncode, cases, lines[-1] if lines else None


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, case, candidate='model'):
        """Path of a fresh recording of one case."""
        done = run('record', case, '--candidate', candidate, '--out', self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.strip())
