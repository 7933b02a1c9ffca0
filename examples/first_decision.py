"""From a model to a decision on its number format. Copy this file and put your own model into the two marked places.

    pip install './bitwatt[deploy]'
    python examples/first_decision.py

Then: bitwatt what-if mine --sweep fp32,fp16,int8,int4
      bitwatt deploy examples.first_decision:model --data test.npz --train train.npz --quick --no-load --batch 1
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import bitwatt


def model() -> nn.Module:  # 1. YOURS: the trained model. Here: a small network for 8 x 8 digits
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip
    train(net)  # instead of: net.load_state_dict(torch.load("weights.pt"))
    return net.eval()


def rows() -> tuple[np.ndarray, np.ndarray]:  # 2. YOURS: rows as the model takes them, and what is right
    X, y = load_digits(return_X_y=True)
    return (X / 16).astype(np.float32), y


def train(net: nn.Module) -> None:
    torch.set_num_threads(1)
    X, y = (torch.from_numpy(part[:1200]) for part in rows())
    optimizer = torch.optim.AdamW(net.parameters())
    for batch in torch.randint(0, 1200, (80, 64)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X[batch]), y[batch]).backward()
        optimizer.step()


def main() -> None:
    net, (X, y) = model(), rows()
    np.savez("train.npz", X=X[:1200], y=y[:1200])
    np.savez("test.npz", X=X[1200:], y=y[1200:])
    with bitwatt.measure("mine") as session, torch.no_grad():
        net(torch.from_numpy(X[:1]))  # one call, as you will serve it
    with torch.no_grad():
        right = (net(torch.from_numpy(X[1200:])).argmax(1).numpy() == y[1200:]).mean()
    print(f"{right:.1%} of {len(y) - 1200} unseen rows are right; one call:\n")
    print(bitwatt.report(session.run, by="scope"))


if __name__ == "__main__":
    main()
