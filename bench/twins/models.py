"""The models that the twin programs train, in plain torch, so that nothing else need be installed.

ResNet-50 and ViT follow the published layer sizes (He et al. 2015; Dosovitskiy et al. 2020); the others are of common sizes.
"""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Bottleneck(nn.Module):
    """A residual block of 1x1, 3x3 and 1x1 convolutions, four times as wide at its end."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, images):
        return torch.relu_(self.path(images) + self.shortcut(images))


def resnet50(classes=1000):
    """ResNet-50: images (n, 3, 224, 224) to logits (n, classes)."""
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def _twice_convolved(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """A U-Net of four levels: images (n, 3, h, w), h and w divisible by 16, to masks (n, 1, h, w)."""

    def __init__(self, width=32):
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(_twice_convolved(a, b) for a, b in zip([3, *widths], widths))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, 2) for a in reversed(widths[:-1]))
        self.up = nn.ModuleList(_twice_convolved(2 * a, a) for a in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, images):
        kept = []
        for level, block in enumerate(self.down):
            images = block(nn.functional.max_pool2d(images, 2) if level else images)
            kept.append(images)
        kept.pop()
        for grow, block in zip(self.grow, self.up):
            images = block(torch.cat((kept.pop(), grow(images)), dim=1))
        return self.head(images)


class LanguageModel(nn.Module):
    """A causal transformer: tokens (n, length) to logits (n, length, vocabulary)."""

    def __init__(self, vocabulary=8192, width=512, layers=8, longest=1024, checkpointed=False):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, vocabulary)
        self.checkpointed = checkpointed

    def forward(self, tokens):
        length = tokens.shape[1]
        hidden = self.tokens(tokens) + self.places.weight[:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        for layer in self.layers:
            if self.checkpointed:
                hidden = checkpoint(layer, hidden, mask, is_causal=True, use_reentrant=False)
            else:
                hidden = layer(hidden, mask, is_causal=True)
        return self.head(hidden)


class VisionTransformer(nn.Module):
    """ViT-S/16: images (n, 3, 224, 224) to logits (n, classes)."""

    def __init__(self, width=384, layers=12, heads=6, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.label = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 197, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        patches = self.patches(images).flatten(2).transpose(1, 2)
        hidden = torch.cat((self.label.expand(len(images), -1, -1), patches), dim=1) + self.places
        return self.head(self.layers(hidden)[:, 0])


class Tagger(nn.Module):
    """A recurrent language model: tokens (n, length) to logits (n, length, vocabulary)."""

    def __init__(self, vocabulary=8192, width=512):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.lstm(self.tokens(tokens))[0])


def generator(noise=128, width=64):
    """A DCGAN generator: noise (n, noise, 1, 1) to images (n, 3, 64, 64)."""
    layers = [nn.ConvTranspose2d(noise, 8 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU(True)]
    for scale in (8, 4, 2):
        outputs = scale * width // 2
        layers += [nn.ConvTranspose2d(scale * width, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


def discriminator(width=64):
    """A DCGAN discriminator: images (n, 3, 64, 64) to logits (n)."""
    layers = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
    for scale in (1, 2, 4):
        outputs = 2 * scale * width
        layers += [nn.Conv2d(scale * width, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Flatten(0))


class CachedDecoder(nn.Module):
    """A decoder of half precision whose keys and values grow by concatenation, a token at a time."""

    def __init__(self, width=1024, layers=12, heads=16):
        super().__init__()
        self.heads = heads
        self.joint = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )

    def forward(self, hidden, cache):
        """hidden (n, new, width); cache: one (keys, values) a layer, replaced in place, or empty at the start."""
        first = not cache
        for index, (joint, out, feed) in enumerate(zip(self.joint, self.out, self.feed)):
            query, key, value = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in joint(hidden).chunk(3, dim=-1)
            )
            if first:
                cache.append((key, value))
            else:
                cache[index] = tuple(torch.cat(pair, dim=2) for pair in zip(cache[index], (key, value)))
            mixed = nn.functional.scaled_dot_product_attention(query, *cache[index], is_causal=first)
            hidden = hidden + out(mixed.transpose(1, 2).flatten(2))
            hidden = hidden + feed(hidden)
        return hidden
