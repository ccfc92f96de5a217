"""What the card does at best, by torch itself: the measure for all that is measured in the same call."""

from cases import LeftOut

GIBIBYTE = 1 << 30
COPIED, SIZE, TIMES = 4 * GIBIBYTE, 8192, 20


def seconds_of(torch, work):
    """The shortest of some repetitions, by events."""
    for _ in range(3):
        work()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(TIMES)]
    for begin, end in events:
        begin.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return min(begin.elapsed_time(end) for begin, end in events) / 1e3


def flops(torch, dtype):
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=dtype) for _ in range(2))
    return 2 * SIZE**3 / seconds_of(torch, lambda: a @ b)


def measure(device):
    """bytes_per_second counts what is read and what is written; flops of float32 are without TF32."""
    if not device.is_gpu:
        raise LeftOut(f"{device.name} is no GPU")
    import torch
    torch.cuda.set_device(torch.device(device.name))
    torch.backends.cuda.matmul.allow_tf32 = False
    source = torch.empty(COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    properties = torch.cuda.get_device_properties(0)
    return {"card": properties.name, "memory_bytes": properties.total_memory,
            "bytes_per_second": 2 * COPIED / seconds_of(torch, lambda: target.copy_(source)),
            "flops": {"bfloat16": flops(torch, torch.bfloat16), "float32": flops(torch, torch.float32)}}
