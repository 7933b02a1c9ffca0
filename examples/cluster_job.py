"""Train on several processes with DistributedDataParallel; every rank is measured where it runs.

bitwatt run --quiet torchrun --nproc-per-node 2 examples/cluster_job.py
bitwatt report --ranks

python examples/cluster_job.py --submitit      # the same as a job of Slurm, or of this machine where there is none
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(steps: int = 20) -> None:
    dist.init_process_group("gloo")  # nccl where there are GPUs
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    inputs, targets = torch.randn(512, 64), torch.randn(512, 1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(inputs[rank::ranks]), targets[rank::ranks])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"{ranks} ranks, {steps} steps: loss {loss.item():.3f} on the rows of rank 0")
    dist.destroy_process_group()


def task() -> None:
    """What submitit runs on each node: it tells the rank in its own way, which torch does not know."""
    import submitit

    submitit.helpers.TorchDistributedEnvironment().export()
    train()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--submitit", action="store_true")
    if not options.parse_args().submitit:
        return train()

    import submitit

    import bitwatt.submitit

    executor = submitit.AutoExecutor("logs")
    executor.update_parameters(nodes=1, tasks_per_node=2, timeout_min=5, name="cluster_job")
    job = executor.submit(bitwatt.submitit.measured(task))
    job.results()
    print(f"job {job.job_id} has ended; its ranks: bitwatt report --ranks")


if __name__ == "__main__":
    main()
