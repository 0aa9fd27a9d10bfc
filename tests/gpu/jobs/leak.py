"""A training loop that keeps one activation of each step. Prints the truth: the line, and the bytes a step."""
import json

import torch

STEPS, ROWS = 60, 1 << 18
kept = []


def keep(model, batch):
    kept.append(model(batch))


device = torch.device("cuda")
model = torch.nn.Linear(8, 8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(STEPS):
    batch = torch.randn(64, 8, device=device)
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    with torch.no_grad():
        keep(model, torch.ones(ROWS, 8, device=device))
print(json.dumps({"file": "leak.py", "line": 11, "bytes_per_step": ROWS * 8 * 4}))
