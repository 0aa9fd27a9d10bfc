"""A healthy training loop: a small transformer, AdamW, 200 steps, with an evaluation now and then."""
import torch

STEPS = 200

torch.manual_seed(0)
device = torch.device("cuda")
layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(STEPS):
    batch = torch.randn(4, 16 + step % 5 * 16, 128, device=device)
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            model(torch.randn(32, 64, 128, device=device)).sum().item()
torch.cuda.synchronize()
