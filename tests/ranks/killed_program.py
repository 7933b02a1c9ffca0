"""Three ranks train until the second comes to its end. Run by torchrun: store, seconds until then, and which end."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import bitwatt


def kill() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    """The second raises; the others wait in C++ for each other, for ever."""
    if dist.get_rank() == 1:
        raise RuntimeError("out of luck")
    dist.recv(torch.empty(1), src=2 - dist.get_rank())


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(nn.Linear(32, 32))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    store, seconds, end = sys.argv[1], float(sys.argv[2]), globals()[sys.argv[3]]
    if seconds == 0 and dist.get_rank() == 1:  # before it begins, but after the others computed a forward
        dist.barrier()
        end()
    with bitwatt.measure("killed", store=store):
        if seconds == 0:
            loss = net(torch.randn(4, 32)).sum()
            dist.barrier()
            loss.backward()  # meets nobody
        began, left = time.monotonic(), torch.ones(1)  # the second rank says how long; the others follow
        while left > 0:
            left.fill_(seconds - time.monotonic() + began)
            dist.broadcast(left, 1)
            net(torch.randn(4, 32)).sum().backward()
            optimizer.step()
            time.sleep(0.005)
        end()
        dist.barrier()
