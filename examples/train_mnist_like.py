"""Train a small classifier on synthetic digits. An ordinary script: nothing in it knows of bitwatt.

    bitwatt run examples/train_mnist_like.py

Digits are drawn on a 5 x 7 grid, enlarged, shifted and made noisy by two DataLoader workers. The model is two
convolutions and one attention layer; AdamW trains it for two epochs and an evaluation follows each.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

FONT = (  # each digit is seven rows of five dots, "X" being ink
    " XXX X   XX   XX   XX   XX   X XXX ",
    "  X   XX    X    X    X    X   XXX ",
    " XXX X   X    X   X   X   X   XXXXX",
    " XXX X   X    X  XX     XX   X XXX ",
    "   X   XX  X X X  X XXXXX   X    X ",
    "XXXXXX    XXXX     X    XX   X XXX ",
    " XXX X    X    XXXX X   XX   X XXX ",
    "XXXXX    X   X   X   X    X    X   ",
    " XXX X   XX   X XXX X   XX   X XXX ",
    " XXX X   XX   X XXXX    X   X  XX  ",
)


class Digits(Dataset):
    """28 x 28 images, each made when it is asked for, the same one every time."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.seed = length, seed
        self.glyphs = torch.tensor([[float(dot == "X") for dot in digit] for digit in FONT]).view(10, 7, 5)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index >= self.length:
            raise IndexError(index)
        chance = torch.Generator().manual_seed(self.seed + index)
        label = index % 10
        image = torch.zeros(1, 28, 28)
        top, left = torch.randint(0, 6, (2,), generator=chance).tolist()
        glyph = self.glyphs[label].repeat_interleave(3, 0).repeat_interleave(3, 1)
        image[0, top : top + 21, left : left + 15] = glyph
        return image + 0.2 * torch.randn(image.shape, generator=chance), label


class Reader(nn.Module):
    """Convolutions see strokes, attention relates the 49 patches, the strongest of each feature name the digit."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, width, 3, padding=1)
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.head = nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(2).transpose(1, 2)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(x.amax(1))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: DataLoader) -> None:
    model.train()
    for images, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@torch.no_grad()
def evaluate(model: nn.Module, batches: DataLoader) -> float:
    model.eval()
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in batches)
    return right / len(batches.dataset)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--images", type=int, default=3200)
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # leave the other core to the workers
    training = DataLoader(Digits(chosen.images, 0), batch_size=64, shuffle=True, num_workers=chosen.workers)
    testing = DataLoader(Digits(500, 1_000_000), batch_size=100, num_workers=chosen.workers)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(1, chosen.epochs + 1):
        train(model, optimizer, training)
        print(f"epoch {epoch}: {evaluate(model, testing):.1%} of 500 test digits are right")


if __name__ == "__main__":
    main()
