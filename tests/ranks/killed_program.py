"""Three ranks train until the second is killed. Run by torchrun: store, seconds until then."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import bitwatt

if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(nn.Linear(32, 32))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with bitwatt.measure("killed", store=sys.argv[1]):
        began = time.monotonic()
        while True:
            net(torch.randn(4, 32)).sum().backward()
            optimizer.step()
            time.sleep(0.005)
            if dist.get_rank() == 1 and time.monotonic() - began > float(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
