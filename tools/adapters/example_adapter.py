#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A kernel of one's own as a candidate of assay: here PyTorch's matrix product, in place
of which a Triton kernel would be called. Copy it together with assay_torch.py and
assay_exchange.py."""
import assay_torch


def gemm(case):
    if case.parameters['recipe'] != 'tensor' or case.parameters['c']:
        raise NotImplementedError('the example takes recipe=tensor without c')
    a, b = (case.tensors[name].float() for name in 'ab')
    scale = case.tensors['sfa'] * case.tensors['sfb']
    d = case.outputs['d']
    case.launch(lambda: d.copy_((a @ b.T) * scale))


if __name__ == '__main__':
    device = 'cuda' if assay_torch.torch.cuda.is_available() else 'cpu'
    assay_torch.serve({'fp8_gemm_nt': gemm}, device)
