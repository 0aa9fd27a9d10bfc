"""Takes and drops tensors of odd sizes in random order, on two streams. Prints the bytes that it holds in the end."""
import json
import random

import torch

ROUNDS, MOST = 2000, 200

random.seed(7)
device = torch.device("cuda")
streams = [torch.cuda.default_stream(device), torch.cuda.Stream(device)]
held = []
for _ in range(ROUNDS):
    with torch.cuda.stream(random.choice(streams)):
        if len(held) < MOST and random.random() < 0.6:
            held.append(torch.empty(random.randrange(1, 1 << 20), dtype=torch.uint8, device=device))
        elif held:
            held.pop(random.randrange(len(held)))
torch.cuda.synchronize()
print(json.dumps({"held_bytes": sum(tensor.untyped_storage().nbytes() for tensor in held)}))
