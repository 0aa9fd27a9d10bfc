"""Trains a small network, and says what PyTorch's own counters say.

One JSON object on the last line: allocated after each step, reserved, the sum of the snapshot's segments.
"""

import json

import torch

torch.manual_seed(0)
device = torch.device("cuda")
model = torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
allocated = []
for _ in range(10):
    inputs = torch.randn(64, 256, device=device)
    labels = torch.randint(0, 10, (64,), device=device)
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    torch.cuda.synchronize()
    allocated.append(torch.cuda.memory_allocated())

# What is captured into a graph is in a pool of its own, and replayed.
static = torch.zeros(1 << 20, device=device)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    static.fill_(0)
    product = static * 2
graph.replay()

# What was copied is right, since copies are real.
there_and_back = torch.arange(1000).to(device).cpu()

# Memory of a stream that is still busy is not given away.
side = torch.cuda.Stream()
held = torch.empty(32 << 20, dtype=torch.uint8, device=device)
address = held.data_ptr()
with torch.cuda.stream(side):
    torch.cuda._sleep(3_600_000_000_000)
held.record_stream(side)
del held
while_busy = torch.empty(32 << 20, dtype=torch.uint8, device=device)
side.synchronize()
after = torch.empty(32 << 20, dtype=torch.uint8, device=device)

try:
    torch.empty(1 << 40, dtype=torch.uint8, device=device)
    refused = False
except torch.OutOfMemoryError:
    refused = True

print(
    json.dumps(
        {
            "device": torch.cuda.get_device_name(),
            "allocated": allocated,
            "copied": bool((there_and_back == torch.arange(1000)).all()),
            "reused_while_busy": while_busy.data_ptr() == address,
            "reused_after": after.data_ptr() == address,
            "refused": refused,
            "reserved": torch.cuda.memory_reserved(),
            "segments": sum(
                sum(block["size"] for block in segment["blocks"]) for segment in torch.cuda.memory_snapshot()
            ),
        }
    )
)
