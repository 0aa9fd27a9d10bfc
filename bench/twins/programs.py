"""Training and inference programs that are run on a GPU and on the simulated device, and must take the same memory on both.

usage: programs.py NAME        prints one JSON line: what torch's allocator held, at its peak and at the end
       programs.py --list      the names

Needs torch and a CUDA device; `gpt2`, `gpt2_cached` and `vit_base` need transformers too, and use its configurations with random weights.
Every size is decided by Python alone (seeded where it is random), never by a number that the device computed, since the
simulated device computes none.
"""
import gc
import json
import os
import random
import resource
import sys
import time

PROGRAMS = {}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def program(name=None, environment=None, **arguments):
    """Enters a function, or a variant of it with other arguments or environment, among the programs.

    It returns how many steps it made, or that and a dict of what else it found.
    """

    def enter(function):
        PROGRAMS[name or function.__name__] = (function, arguments, environment or {})
        return function

    return enter


def train(model, optimizer, batches, loss_of):
    """Steps over batches; loss_of(model, batch) is the loss. Returns the number of steps."""
    steps = 0
    for batch in batches:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        steps += 1
    return steps


def image_batches(count, batch, side=224):
    """Random labelled images, made on the device."""
    import torch

    for _ in range(count):
        yield torch.randn(batch, 3, side, side, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda")


def token_batches(count, batch, length, vocabulary=8192):
    """Random tokens, made on the host and copied; length is a number or a function of none."""
    import torch

    for _ in range(count):
        yield torch.randint(0, vocabulary, (batch, length() if callable(length) else length)).to("cuda")


def image_loss(model, batch):
    from torch.nn.functional import cross_entropy

    images, labels = batch
    return cross_entropy(model(images), labels)


def next_token_loss(model, tokens):
    from torch.nn.functional import cross_entropy

    return cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


@program()
@program("mlp_async_allocator", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
def mlp():
    import torch
    from torch import nn

    layers = [layer for _ in range(8) for layer in (nn.Linear(2048, 2048), nn.ReLU())]
    model = nn.Sequential(*layers).cuda()
    batches = (torch.randn(1024, 2048, device="cuda") for _ in range(50))
    return train(model, torch.optim.AdamW(model.parameters()), batches, lambda model, batch: model(batch).pow(2).mean())


@program()
@program("resnet50_expandable", EXPANDABLE)
@program("resnet50_channels_last_amp", half=True)
def resnet50(half=False):
    import torch
    from models import resnet50

    model = resnet50().cuda()
    if half:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def loss_of(model, batch):
        images, labels = batch
        if half:
            images = images.to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            return image_loss(model, (images, labels))

    return train(model, optimizer, image_batches(12, 64), loss_of)


@program()
@program("transformer_checkpoint", checkpointed=True)
@program("transformer_bf16", dtype="bfloat16")
def transformer(checkpointed=False, dtype=None):
    import torch
    from models import LanguageModel

    model = LanguageModel(checkpointed=checkpointed).cuda()

    def loss_of(model, tokens):
        with torch.autocast("cuda", getattr(torch, dtype or "float16"), enabled=dtype is not None):
            return next_token_loss(model, tokens)

    return train(model, torch.optim.AdamW(model.parameters()), token_batches(15, 32, 256), loss_of)


@program()
def transformer_amp():
    """Half precision with a scaler, which reads from the device whether to step."""
    import torch
    from models import LanguageModel

    model = LanguageModel().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    steps = 0
    for tokens in token_batches(15, 32, 256):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = next_token_loss(model, tokens)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        steps += 1
    return steps


@program()
def gradient_accumulation():
    import torch
    from models import LanguageModel

    model = LanguageModel().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    steps = 0
    for index, tokens in enumerate(token_batches(24, 8, 512)):
        (next_token_loss(model, tokens) / 4).backward()
        if index % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    return steps


@program()
@program("dynamic_lengths_expandable", EXPANDABLE)
def dynamic_lengths():
    import torch
    from models import LanguageModel

    lengths = random.Random(7)
    model = LanguageModel(layers=6).cuda()
    batches = token_batches(30, 16, lambda: lengths.randint(32, 768))
    return train(model, torch.optim.AdamW(model.parameters()), batches, next_token_loss)


@program()
def gpt2():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).cuda()

    def loss_of(model, tokens):
        with torch.autocast("cuda", torch.bfloat16):
            return model(tokens, labels=tokens).loss

    batches = token_batches(8, 8, 512, vocabulary=50257)
    return train(model, torch.optim.AdamW(model.parameters(), lr=1e-4), batches, loss_of)


@program()
def gpt2_cached():
    """Greedy decoding of a fixed number of tokens: `generate` asks the device whether to stop, so that it would not."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).cuda().half().eval()
    prompts = token_batches(4, 16, 128, vocabulary=50257)
    steps = 0
    with torch.inference_mode():
        for tokens in prompts:
            cache = None
            for _ in range(48):
                answer = model(tokens, past_key_values=cache, use_cache=True)
                cache = answer.past_key_values
                tokens = answer.logits[:, -1:].argmax(-1)
                steps += 1
    return steps


@program()
def vit_base():
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(ViTConfig(num_labels=1000)).cuda()

    def loss_of(model, batch):
        images, labels = batch
        return model(images, labels=labels).loss

    return train(model, torch.optim.AdamW(model.parameters()), image_batches(8, 32), loss_of)


@program()
def vit():
    import torch
    from models import VisionTransformer

    model = VisionTransformer().cuda()
    return train(model, torch.optim.AdamW(model.parameters(), foreach=False), image_batches(10, 64), image_loss)


@program()
def unet():
    import torch
    from models import UNet

    model = UNet().cuda()

    def loss_of(model, batch):
        images, _ = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(model(images), torch.rand_like(images[:, :1]))

    return train(model, torch.optim.Adam(model.parameters()), image_batches(10, 8, side=256), loss_of)


@program()
def lstm():
    import torch
    from models import Tagger

    model = Tagger().cuda()
    optimizer = torch.optim.Adam(model.parameters())

    def loss_of(model, tokens):
        return next_token_loss(model, tokens)

    return train(model, optimizer, token_batches(15, 64, 128), loss_of)


@program()
def gan():
    import torch
    from models import discriminator, generator
    from torch.nn.functional import binary_cross_entropy_with_logits as against

    makes, judges = generator().cuda(), discriminator().cuda()
    makes_better = torch.optim.Adam(makes.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judges_better = torch.optim.Adam(judges.parameters(), lr=2e-4, betas=(0.5, 0.999))
    ones, zeros = torch.ones(128, device="cuda"), torch.zeros(128, device="cuda")
    steps = 0
    for real, _ in image_batches(20, 128, side=64):
        made = makes(torch.randn(128, 128, 1, 1, device="cuda"))
        judges_better.zero_grad()
        (against(judges(real), ones) + against(judges(made.detach()), zeros)).backward()
        judges_better.step()
        makes_better.zero_grad()
        against(judges(made), ones).backward()
        makes_better.step()
        steps += 1
    return steps


@program()
def two_models():
    """One model after the other in one process: the second lives in what the first left cached."""
    import torch
    from models import LanguageModel, UNet

    model = UNet().cuda()
    steps = train(model, torch.optim.Adam(model.parameters()), image_batches(5, 16, side=128),
                  lambda model, batch: model(batch[0]).pow(2).mean())
    del model
    gc.collect()
    model = LanguageModel(layers=6).cuda()
    return steps + train(model, torch.optim.AdamW(model.parameters()), token_batches(10, 16, 256), next_token_loss)


@program()
@program("out_of_memory_limited", limit_bytes=12 << 30)
def out_of_memory(limit_bytes=None):
    """Doubles the batch until it does not fit in the device, or in a part of it that torch keeps to."""
    import torch
    from torch import nn

    if limit_bytes:
        torch.cuda.set_per_process_memory_fraction(limit_bytes / torch.cuda.get_device_properties(0).total_memory)
    layers = [layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.GELU())]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch, fitted = 4096, 0
    while True:
        try:
            train(model, optimizer, [torch.randn(batch, 1024, device="cuda")], lambda model, batch: model(batch).pow(2).mean())
        except torch.cuda.OutOfMemoryError:
            break
        fitted, batch = batch, 2 * batch
    # Outside the handler: the exception's frames would keep the activations alive.
    torch.cuda.empty_cache()
    steps = train(model, optimizer, [torch.randn(4096, 1024, device="cuda")], lambda model, batch: model(batch).pow(2).mean())
    return steps, {"largest_batch": fitted}


@program()
def cuda_graphs():
    """A whole training step, captured once and replayed."""
    import torch
    from torch import nn

    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(1024, 1024), nn.ReLU())]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    batch = torch.randn(512, 1024, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(batch).pow(2).mean().backward()
        optimizer.step()

    # Warm-up on a side stream, as torch's notes on capture want it.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(30):
        batch.copy_(torch.randn(512, 1024))
        graph.replay()
    return 34


@program()
def compiled():
    """A compiled model; what is compiled is kept nowhere, so that each run does the same."""
    import tempfile

    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=os.path.join(cache, "triton"))
        import torch
        from models import VisionTransformer

        model = VisionTransformer(layers=4).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        return train(torch.compile(model), optimizer, image_batches(8, 64), image_loss)


@program()
def data_loader():
    """Batches from two worker processes through pinned memory, copied without waiting."""
    import torch
    from models import VisionTransformer

    labelled = torch.utils.data.TensorDataset(torch.randn(640, 3, 224, 224), torch.randint(0, 1000, (640,)))
    loader = torch.utils.data.DataLoader(labelled, batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
    model = VisionTransformer(layers=6).cuda()
    batches = (tuple(part.cuda(non_blocking=True) for part in batch) for batch in loader)
    return train(model, torch.optim.AdamW(model.parameters()), batches, image_loss)


@program()
@program("kv_cache_expandable", EXPANDABLE)
def kv_cache():
    """Requests of random lengths, whose caches grow a token at a time and are dropped."""
    import torch
    from models import CachedDecoder

    lengths = random.Random(11)
    model = CachedDecoder().cuda().half().eval()
    steps = 0
    with torch.inference_mode():
        for _ in range(10):
            cache = []
            model(torch.randn(8, lengths.randint(16, 512), 1024, device="cuda", dtype=torch.half), cache)
            token = torch.randn(8, 1, 1024, device="cuda", dtype=torch.half)
            for _ in range(lengths.randint(8, 48)):
                token = model(token, cache)
                steps += 1
    return steps


def measured(name):
    """Runs a program; what torch's allocator held, in bytes. host_peak is the resident memory of this process, where a
    simulated device's memory lies too."""
    function, arguments, environment = PROGRAMS[name]
    os.environ.update(environment)
    import torch

    random.seed(0)
    torch.manual_seed(0)
    start = time.perf_counter()
    result = function(**arguments)
    torch.cuda.synchronize()
    steps, found = result if isinstance(result, tuple) else (result, {})
    stats = torch.cuda.memory_stats()
    transformers = sys.modules.get("transformers")
    return {
        "name": name,
        "torch": torch.__version__,
        "transformers": transformers.__version__ if transformers else None,
        "device": torch.cuda.get_device_name(),
        "steps": steps,
        "seconds": round(time.perf_counter() - start, 2),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "segments": stats.get("segment.all.current", 0),
        "device_allocations": stats.get("num_device_alloc", 0),
        "retries": stats.get("num_alloc_retries", 0),
        "host_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        **found,
    }


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(PROGRAMS))
    elif len(sys.argv) == 2 and sys.argv[1] in PROGRAMS:
        print(json.dumps(measured(sys.argv[1])), flush=True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
