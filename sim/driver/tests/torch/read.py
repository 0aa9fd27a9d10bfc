"""Reads numbers from the device in the ways that PyTorch has."""

import json

import torch

x = torch.ones(1000, device="cuda")
found = {
    "nonzero": torch.nonzero(x).shape[0],
    "masked_select": torch.masked_select(x, x > 0).shape[0],
    "mask": x[x > 0].shape[0],
    "unique": torch.unique(x).shape[0],
    "item": x.sum().item(),
    "all": (x > 0).all().item(),
    "equal": torch.equal(x, x.clone()),
    "any": (x > 0).any().item(),
    "bitwise": torch.bitwise_and(x > 0, x > 1)[0].item(),
    "repeated": torch.repeat_interleave(x, (x > 0).long()).shape[0],
}
# Arguments are checked: of the widths none may be negative, and all probabilities are finite.
found["sampled"] = torch.distributions.Normal(x, x).sample().shape[0]
found["drawn"] = torch.distributions.Categorical(logits=x).sample((3,)).shape[0]

# Blocks that hold numbers, for the scaler's flag to lie in.
used = [torch.full((64,), 7.0).cuda() for _ in range(50)]
del used
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler()
steps = 0
loss = None
# Ends at its first look: no number here rises, and none is anything but zero.
while loss is None or loss.item() > 0.1:
    loss = model(torch.ones(4, 64, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    steps += 1
found["steps"] = steps
found["with_state"] = len(optimizer.state)
print(json.dumps(found))
