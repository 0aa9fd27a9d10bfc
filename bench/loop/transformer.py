"""One training loop whose step time is bound by the CPU: 12 encoder layers of 256, batch 4 x 64, AdamW.

usage: transformer.py [--steps 200] [--recorder none|python|all]

Prints one JSON object: the median and the tenth percentile of a step in milliseconds. --recorder turns on torch's own
allocation recorder for comparison. Needs a CUDA device.
"""
import argparse
import json
import time

import torch

WARM_UP_STEPS = 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--recorder", choices=["none", "python", "all"], default="none")
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = torch.randn(4, 64, 256, device=device)

    def step():
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()

    if options.recorder != "none":
        torch.cuda.memory._record_memory_history(stacks=options.recorder)
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    times_ms = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times_ms.append((time.perf_counter() - start) * 1e3)
    times_ms.sort()
    print(json.dumps({
        "median_ms": times_ms[len(times_ms) // 2],
        "p10_ms": times_ms[len(times_ms) // 10],
        "allocated_bytes": torch.cuda.memory_allocated(),
        "reserved_bytes": torch.cuda.memory_reserved(),
    }))


if __name__ == "__main__":
    main()
