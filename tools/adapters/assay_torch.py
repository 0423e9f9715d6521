# SPDX-License-Identifier: MIT
"""Lets assay run kernels that are called from PyTorch:

    import assay_torch

    def gemm(case):
        a, b, d = case.tensors['a'], case.tensors['b'], case.outputs['d']
        case.launch(lambda: my_kernel(a, b, d))

    assay_torch.serve({'fp8_gemm_nt': gemm})

Inputs are tensors on the device, rows padded as the case says, FP8 with its own dtype
where this PyTorch has it (else uint8). Outputs are there, poisoned; a function writes
into them, or returns a dictionary of outputs by name, or the only output. It may return
tile_scheduler_metadata and num_splits, the plan that was used. Needs assay_exchange.py
beside it."""
import ctypes
import sys
import time

import assay_exchange

try:
    import torch
except ImportError as missing:
    print(f'PyTorch cannot be imported ({missing}); run this with a python3 that has '
          'torch', file=sys.stderr)
    sys.exit(2)

POISON = 0xDB
DTYPE_NAMES = {'F8_E4M3': 'float8_e4m3fn', 'F8_E5M2': 'float8_e5m2',
               'F8_E8M0': 'float8_e8m0fnu', 'BF16': 'bfloat16', 'F16': 'float16',
               'F32': 'float32', 'I32': 'int32', 'U8': 'uint8'}


def torch_dtype(name):
    """The dtype for one of safetensors; uint8 where this PyTorch is too old for it."""
    return getattr(torch, DTYPE_NAMES[name], torch.uint8)


def storage_of(tensor, device):
    """The stored bytes of an input on the device, or poison for an output."""
    size = tensor.stored_elements * assay_exchange.ELEMENT_BYTES[tensor.dtype]
    if not tensor.data:
        return torch.full((size,), POISON, dtype=torch.uint8, device=device)
    host = torch.frombuffer(tensor.data, dtype=torch.uint8)
    return host.to(device, copy=True)


def bytes_of(tensor):
    """The elements of a tensor in row-major order, as bytes."""
    host = tensor.detach().contiguous().cpu()
    size = host.numel() * host.element_size()
    return ctypes.string_at(host.data_ptr(), size) if size else b''


class Case:
    """What a function gets: line, operation, parameters and launches as in
    assay_exchange.Case, `tensors` and `outputs` as torch tensors by name, `device`."""

    def __init__(self, exchange, device):
        self.exchange, self.device = exchange, device
        self.line, self.operation = exchange.line, exchange.operation
        self.parameters, self.launches = exchange.parameters, exchange.launches
        self.storage, self.seconds = {}, None
        self.tensors = {name: self.upload(name, tensor)
                        for name, tensor in exchange.inputs.items()}
        self.outputs = {name: self.upload(name, tensor)
                        for name, tensor in exchange.outputs.items()}

    def upload(self, name, tensor):
        storage = self.storage[name] = storage_of(tensor, self.device)
        return storage.view(torch_dtype(tensor.dtype)).as_strided(tensor.shape,
                                                                  tensor.stride)

    def synchronize(self):
        if str(self.device).startswith('cuda'):
            torch.cuda.synchronize(self.device)

    def launch(self, function, *arguments):
        """Calls the function as often as asked, takes the time of that, and returns what
        it returned last. What is done before is not counted."""
        self.synchronize()
        start = time.perf_counter()
        for _ in range(self.launches):
            result = function(*arguments)
        self.synchronize()
        self.seconds = time.perf_counter() - start
        return result

    def dtype_of(self, name, tensor):
        """The name of a result's dtype. uint8 may stand for what the case wants."""
        known = self.exchange.outputs.get(name) or self.exchange.inputs.get(name)
        if known and tensor.dtype in (torch_dtype(known.dtype), torch.uint8):
            return known.dtype
        for dtype, of_torch in DTYPE_NAMES.items():
            if tensor.dtype == getattr(torch, of_torch, None):
                return dtype
        raise TypeError(f'{name} is {tensor.dtype}, which assay does not know')

    def write(self, results):
        """Keeps what was returned, and of the other outputs all their memory, so that
        what a kernel wrote into row padding is seen."""
        for name, tensor in results.items():
            self.exchange.write(name, bytes_of(tensor), tuple(tensor.shape),
                                self.dtype_of(name, tensor))
        for name in self.outputs.keys() - results.keys():
            self.exchange.write(name, bytes_of(self.storage[name]))


def named(results, outputs):
    """What a function returned, as a dictionary."""
    if results is None:
        return {}
    if isinstance(results, dict):
        return results
    if len(outputs) != 1:
        raise TypeError(f'there are {len(outputs)} outputs; return a dictionary of them')
    return {next(iter(outputs)): results}


def compute(exchange, functions, device):
    if exchange.operation not in functions:
        raise NotImplementedError(f'no function for {exchange.operation}; there is '
                                  f'{", ".join(functions)}')
    case = Case(exchange, device)
    results = named(functions[exchange.operation](case), case.outputs)
    case.synchronize()
    case.write(results)
    return case.seconds


def serve(functions, device='cuda'):
    """Answers case after case. After a CUDA error nothing works any more in a process:
    then it ends, and assay starts a new one."""
    if str(device).startswith('cuda') and not torch.cuda.is_available():
        print('PyTorch sees no CUDA GPU; give serve another device, such as '
              "device='cpu'", file=sys.stderr)
        sys.exit(2)

    def compute_or_end(exchange):
        try:
            return compute(exchange, functions, device)
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError from error
        except NotImplementedError:
            raise
        except Exception:
            if str(device).startswith('cuda'):
                end_if_lost(device)
            raise

    assay_exchange.serve(compute_or_end)


def end_if_lost(device):
    try:
        torch.cuda.synchronize(device)
    except RuntimeError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(1) from error
