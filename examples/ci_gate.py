"""One training step of a small transformer: what a gate in CI measures before and after a change.

    bitwatt run --quiet --name main examples/ci_gate.py
    bitwatt run --quiet --name ci examples/ci_gate.py --hidden 288
    bitwatt check ci --baseline main --budget examples/ci_gate.toml; echo "exit code $?"

The second command stands for a change to the model: its hidden layer got wider.
"""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--hidden", type=int, default=256)
    chosen = options.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(Block(64, chosen.hidden), Block(64, chosen.hidden), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(8, 32, 64), torch.randint(0, 10, (8,))
    nn.functional.cross_entropy(model(x).mean(1), y).backward()
    optimizer.step()


if __name__ == "__main__":
    main()
