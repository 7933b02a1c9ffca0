"""Three ranks train until the second comes to its end. Run by torchrun: store, steps until then, and which end."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import bitwatt
from bitwatt import store
from bitwatt.ranks.arrivals import Arrivals


def kill() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    """The second raises; the others wait in C++ for each other, for ever."""
    if dist.get_rank() == 1:
        raise RuntimeError("out of luck")
    dist.recv(torch.empty(1), src=2 - dist.get_rank())


def written(folder: str) -> int:
    """Steps that the file of this rank tells of: who is killed leaves no more."""
    packed = next((one.rank.arrivals for one in store.runs(folder) if one.rank.rank == dist.get_rank()), "")
    return Arrivals.unpacked(packed).count if packed else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(nn.Linear(32, 32))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    folder, steps, end = sys.argv[1], int(sys.argv[2]), globals()[sys.argv[3]]
    if steps == 0 and dist.get_rank() == 1:  # before it begins, but after the others computed a forward
        dist.barrier()
        end()
    with bitwatt.measure("killed", store=folder):
        if steps == 0:
            loss = net(torch.randn(4, 32)).sum()
            dist.barrier()
            loss.backward()  # meets nobody
        done, left = 0, torch.ones(1)  # the second rank says how many; the others follow
        while left > 0:
            left.fill_(steps - (written(folder) if end is kill else done))
            dist.broadcast(left, 1)
            net(torch.randn(4, 32)).sum().backward()
            optimizer.step()
            done += 1
            time.sleep(0.005)
        end()
        dist.barrier()
