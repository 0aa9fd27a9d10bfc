"""A small training with a batch of 256 times its argument; says what PyTorch counted, and what it loaded of NVIDIA's."""
import json
import sys

import torch

batch = 256 * int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    inputs = torch.zeros(batch, 1024).cuda()
    loss = model(inputs).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
with open("/proc/self/maps") as maps:
    files = {line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) == 6}
print(json.dumps({
    "device": torch.cuda.get_device_name(),
    "total": torch.cuda.mem_get_info()[1],
    "allocated": torch.cuda.max_memory_allocated(),
    "reserved": torch.cuda.max_memory_reserved(),
    "nvidia": sorted(file for file in files if "/nvidia/" in file),
}))
