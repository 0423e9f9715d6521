# SPDX-License-Identifier: MIT
"""The planted faults of libassay_cuda_faults.so, for tools/gpu_check --faults."""
import os
import shutil

DENSE = 'fp8_gemm_nt m=392 n=776 k=1360 seed=1'
ONTO_C = 'fp8_gemm_nt m=392 n=776 k=1360 recipe=1d1d out=f32 c=1 seed=2'

# Name, a case that should show it, further options of the backend, which checks: all that
# apply unless the case is too large.
FAULTS = (
    ('no-proxy-fence', DENSE, '', ''),
    ('no-full-wait', DENSE, '', ''),
    ('early-release', 'fp8_gemm_nt m=2048 n=4096 k=2048 seed=3', '', ''),
    ('no-store-wait', 'fp8_gemm_nt m=8192 n=8192 k=16 seed=3', '',
     'bitwise,bound,repeat'),
    ('offset-32-bits', 'fp8_gemm_nt m=72000 n=8 k=16 out=f32 d_stride=8192 seed=4',
     'inputs=0', 'bitwise,bound'),
    ('scale-stage', DENSE, '', ''),
    ('no-tail-zeros', 'fp8_gemm_nt m=130 n=136 k=400 a_stride=416 b_stride=416 seed=5',
     '', ''),
    ('wrong-peer', 'fp8_gemm_nt m=1024 n=2048 k=1360 seed=6', 'cluster=2', ''),
    ('stale-descriptor', 'k_grouped_fp8_gemm_nt_contiguous m=128 n=136 ks=256,384,128 '
     'seed=7', '', ''),
    ('dropped-promotion', ONTO_C, '', ''),
)


def killers(case):
    """What tells a user that a case went wrong: the failed checks, or how it ended."""
    if case['status'] == 'failed':
        return [f'failed: {case["message"]}']
    if case['status'] != 'ran':
        return [case['status']]
    found = {finding['check'] for finding in case.get('findings', ())
             if finding['failure']}
    for output in case['outputs']:
        found |= {'bitwise'} if output.get('differ') else set()
        found |= {'bound'} if output.get('outside') else set()
    return sorted(found)


def arguments(line, options, checks):
    """Of `assay verify`, but for the report."""
    return [line, '--candidate', 'cuda:' + options if options else 'cuda', '--timeout',
            '20', '--repeats', '20', *(('--check', checks) if checks else ())]


def find(check, failure, name, line, more, checks):
    """A step: the fault is found."""
    report = f'fault_{name}.jsonl'
    options = ','.join(filter(None, ('fault=' + name, more)))
    check.remove(report)
    check.run([check.assay, 'verify', *arguments(line, options, checks), '--json',
               check.path(report)], may_fail=True)
    cases = [one for one in check.read_report(report) if one['type'] == 'case']
    found = killers(cases[0])
    said = ', '.join(found) or 'nothing'
    check.append('faults.md', f'| {name} | `{line}` | {said} |\n')
    if not found or found == ['unsupported']:
        raise failure(f'nothing found it in {line}')
    return 'found by ' + said


def control(check, failure):
    """A step: what is written where it must not be, compute-sanitizer sees."""
    program = (shutil.which('compute-sanitizer')
               or '/usr/local/cuda/bin/compute-sanitizer')
    line = next(row[1] for row in FAULTS if row[0] == 'offset-32-bits')
    folder = check.new_folder('memcheck_control')
    check.run([program, '--tool', 'memcheck', '--target-processes', 'all', '--log-file',
               os.path.join(folder, '%p.txt'), check.assay, 'verify',
               *arguments(line, 'fault=offset-32-bits,inputs=0,guard=0', 'bitwise')],
              limit=100, may_fail=True)
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding='utf-8',
                  errors='replace') as file:
            for text in file:
                if 'Invalid __global__' in text:
                    return text.strip('= \n')
    raise failure('memcheck saw nothing')


def run_steps(check, equal, failure):
    """@equal: the note of a summary in which all is right; else it raises @failure."""
    check.new_file('faults.md', '| fault | case | found by |\n|---|---|---|\n')
    for number, (line, more, checks) in enumerate(sorted({row[1:] for row in FAULTS})):
        name = f'clean_{number}'
        check.step(name, lambda: equal(check.judge(
            ['verify', *arguments(line, more, checks)], name + '.jsonl')[-1]))
    for row in FAULTS:
        check.step('fault_' + row[0], lambda: find(check, failure, *row))
    check.step('memcheck_control', lambda: control(check, failure))
