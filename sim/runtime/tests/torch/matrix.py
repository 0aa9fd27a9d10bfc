"""Trains small networks of each kind, for any PyTorch since 2.1, and says what its counters say.

One JSON object on the last line: versions, peaks, what is reserved at the end, and the sum of the snapshot's segments.
"""

import json
import warnings

# What differs between versions in words only.
warnings.filterwarnings("ignore")

import torch  # noqa: E402

torch.manual_seed(0)
device = torch.device("cuda")


def train(name, model, inputs, loss_of, amp=None):
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    allocated = []
    for _ in range(6):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=amp or torch.float16, enabled=amp is not None):
            loss = loss_of(model(inputs))
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        allocated.append(torch.cuda.memory_allocated())
    assert allocated[2] == allocated[-1], f"{name} grows: {allocated}"


class Recurrent(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.recurrent = kind(64, 128, num_layers=2, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(256, 10)

    def forward(self, inputs):
        return self.head(self.recurrent(inputs)[0][:, -1])


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 10))


def convolutions():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1),
        torch.nn.MaxPool2d(2),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 10),
    )


rows = torch.randn(64, 256, device=device)
images = torch.randn(16, 3, 64, 64, device=device)
sequences = torch.randn(8, 20, 64, device=device)
labels = torch.zeros(64, dtype=torch.long, device=device)


def loss_of(outputs):
    return torch.nn.functional.cross_entropy(outputs.float(), labels[: len(outputs)])


train("MLP", mlp(), rows, loss_of)
train("MLP with AMP", mlp(), rows, loss_of, torch.bfloat16)
train("convolutions", convolutions(), images, loss_of)
train("convolutions with AMP", convolutions(), images, loss_of, torch.float16)
train("LSTM", Recurrent(torch.nn.LSTM), sequences, loss_of)
train("GRU", Recurrent(torch.nn.GRU), sequences, loss_of)
train("transformer", torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), sequences, torch.sum)

# A kernel that is compiled when it is first used.
torch.gcd(labels, labels)
torch.cuda.synchronize()

print(
    json.dumps(
        {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "device": torch.cuda.get_device_name(),
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "reserved": torch.cuda.memory_reserved(),
            "segments": sum(segment["total_size"] for segment in torch.cuda.memory_snapshot()),
        }
    )
)
