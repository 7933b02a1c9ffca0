"""Train a small classifier. Two lines tell bitwatt what it cannot know: the name of a phase, and how well it went.

    bitwatt run --name narrow examples/training_script.py --width 16
    bitwatt run --name wide examples/training_script.py --width 64
    bitwatt compare narrow wide --metric accuracy

Under plain `python` both lines do nothing.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

import bitwatt


def spirals(points: int, arms: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on spirals that wind around each other, and the arm each lies on."""
    arm = torch.arange(points) % arms
    along = torch.rand(points)
    angle = 2 * torch.pi * (arm / arms + 1.25 * along) + 0.15 * torch.randn(points)
    return along[:, None] * torch.stack((angle.cos(), angle.sin()), 1), arm


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--width", type=int, default=16)
    options.add_argument("--epochs", type=int, default=10)
    chosen = options.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # batches are small: threads would wait for each other
    points, arms = spirals(2_048)
    unseen, answers = spirals(1_024)
    width = chosen.width
    model = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(chosen.epochs):
        for batch in torch.randperm(2_048).split(64):
            loss = F.cross_entropy(model(points[batch]), arms[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with bitwatt.phase("evaluate"), torch.no_grad():
        accuracy = (model(unseen).argmax(1) == answers).float().mean().item()
    bitwatt.metric("accuracy", accuracy)
    print(f"width {width}: {accuracy:.1%} of 1,024 unseen points are right")


if __name__ == "__main__":
    main()
