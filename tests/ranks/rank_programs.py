"""Programs for several ranks, each with the same computation for one process. Run by torchrun: store, program names."""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import bitwatt

STEPS, BATCH, WIDTH, MICROBATCHES = 4, 16, 32, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


def model(blocks: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[Block() for _ in range(blocks)])


def batches(rank: int = 0, world: int = 1):
    torch.manual_seed(1)
    for x in torch.randn(STEPS, BATCH, WIDTH):
        yield x[rank * BATCH // world : (rank + 1) * BATCH // world]


def train(net: nn.Module, data, optimizer=None, before_step=lambda: None) -> None:
    optimizer = optimizer or torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    for x in data:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        before_step()
        optimizer.step()


def come(rank: int, world: int, moment: str, late: int, seconds: float) -> None:
    """Rank `late` comes so many seconds after all others are here, however long a busy machine keeps them away."""
    store = dist.distributed_c10d._get_default_store()
    if rank != late:
        store.set(f"{moment} {rank}", "here")
        return
    store.wait([f"{moment} {other}" for other in range(world) if other != late])
    time.sleep(seconds)


def alone() -> None:
    train(model(), batches())


def ddp(rank: int, world: int) -> None:
    train(nn.parallel.DistributedDataParallel(model()), batches(rank, world))


def zero(rank: int, world: int) -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = nn.parallel.DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=1e-3, foreach=False)
    train(net, batches(rank, world), optimizer)


def hand(rank: int, world: int) -> None:
    """Data parallel without a library."""
    net = model()

    def add_up() -> None:
        for parameter in net.parameters():
            dist.all_reduce(parameter.grad)

    train(net, batches(rank, world), before_step=add_up)


def fsdp(rank: int, world: int) -> None:
    from torch.distributed.fsdp import fully_shard

    net = model()
    for block in net:
        fully_shard(block)
    train(fully_shard(net), batches(rank, world))


def fsdp1(rank: int, world: int) -> None:
    """The older FSDP: weights of a block lie in one row."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    blocks = ModuleWrapPolicy({Block})
    net = FullyShardedDataParallel(
        model(), auto_wrap_policy=blocks, device_id=torch.device("cpu"), use_orig_params=True
    )
    train(net, batches(rank, world))


class Headed(nn.Module):
    """With weights that are never used."""

    def __init__(self) -> None:
        super().__init__()
        self.body = model()
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def ddp_unused(rank: int, world: int) -> None:
    train(nn.parallel.DistributedDataParallel(Headed(), find_unused_parameters=True), batches(rank, world))


def ddp_static(rank: int, world: int) -> None:
    train(nn.parallel.DistributedDataParallel(model(), static_graph=True), batches(rank, world))


def ddp_compiled(rank: int, world: int) -> None:
    net = nn.parallel.DistributedDataParallel(model())
    train(torch.compile(net, backend="aot_eager"), batches(rank, world))


def two_groups(rank: int, world: int) -> None:
    """Gradients go one way, what is logged another."""
    one, other = dist.new_group(range(world)), dist.new_group(range(world))
    net = nn.parallel.DistributedDataParallel(model(), process_group=one)
    train(net, batches(rank, world), before_step=lambda: dist.all_reduce(torch.ones(1000), group=other))


def accumulated(rank: int, world: int) -> None:
    """Gradients of several backwards, of which only the last is waited for."""
    net = nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    for x in batches(rank, world):
        optimizer.zero_grad()
        *first, last = x.chunk(MICROBATCHES)
        with net.no_sync():
            for part in first:
                net(part).square().mean().backward()
        net(last).square().mean().backward()
        optimizer.step()


def tensor(rank: int, world: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (world,))
    net = model()
    for block in net:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    train(net, batches())


def in_microbatches(blocks: int = 2) -> None:
    """What a pipeline does, in one process."""
    net = model(blocks)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    for x in batches():
        optimizer.zero_grad()
        for part in x.chunk(MICROBATCHES):
            net(part).square().mean().backward()
        optimizer.step()


def pipeline(rank: int, world: int, schedule: str = "ScheduleGPipe", blocks: int = 2) -> None:
    """Blocks are dealt out to ranks like cards; schedules for several stages on a rank take a list of them."""
    from torch.distributed.pipelining import PipelineStage, schedules

    net = model(blocks)
    mine = range(rank, blocks, world)
    stages = [PipelineStage(net[i], i, blocks, torch.device("cpu")) for i in mine]
    pipe = getattr(schedules, schedule)(
        stages if len(stages) > 1 else stages[0], MICROBATCHES, loss_fn=lambda out, target: out.square().mean()
    )
    weights = [weight for i in mine for weight in net[i].parameters()]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, foreach=False)
    for x in batches():
        optimizer.zero_grad()
        pipe.step(*([x] if rank == 0 else []), **({"target": x} if stages[-1].is_last else {}))
        optimizer.step()


def pipeline_1f1b(rank: int, world: int) -> None:
    pipeline(rank, world, "Schedule1F1B")


def pipeline_interleaved(rank: int, world: int) -> None:
    pipeline(rank, world, "ScheduleInterleaved1F1B", blocks=4)


def pipeline_zero_bubble(rank: int, world: int) -> None:
    """Gradients of weights are computed apart, from edges of the graph instead of tensors."""
    pipeline(rank, world, "ScheduleInterleavedZeroBubble", blocks=4)


def expert(rank: int, world: int) -> None:
    """Tokens travel to the expert that is theirs, and back."""
    from torch.distributed.nn.functional import all_to_all_single

    torch.manual_seed(rank)
    mine = nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(mine.parameters(), lr=1e-3)
    for x in batches(rank, world):
        there = all_to_all_single(torch.empty_like(x), x.clone().requires_grad_())
        back = all_to_all_single(torch.empty_like(there), mine(there))
        optimizer.zero_grad()
        back.square().mean().backward()
        optimizer.step()


def accelerated(rank: int, world: int) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = model()
    net, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False))
    for x in batches(rank, world):
        optimizer.zero_grad()
        accelerator.backward(net(x).square().mean())
        optimizer.step()


def clipped(rank: int, world: int) -> None:
    """Data parallel with accumulated and clipped gradients: what comes after adding up, every rank repeats."""
    net = nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    for x in batches(rank, world):
        optimizer.zero_grad()
        with net.no_sync():
            net(x[:2]).square().mean().backward()
        net(x[2:]).square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


def fsdp_tensor(rank: int, world: int) -> None:
    """Two by two: each pair shares out its layers, and both pairs share out the data."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("data", "tensor"))
    net = model()
    for block in net:
        parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["data"])
    train(fully_shard(net, mesh=mesh["data"]), batches(rank // 2, 2))


def hybrid(rank: int, world: int) -> None:
    """Two by two: weights are shared out in each pair, and the pairs hold the same."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("replicate", "shard"))
    net = model()
    for block in net:
        fully_shard(block, mesh=mesh)
    train(fully_shard(net, mesh=mesh), batches(rank, world))


def serving(rank: int, world: int) -> None:
    """No optimizer: each collective is a step. Rank 1 is late at every request."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh, net = init_device_mesh("cpu", (world,)), model()
    for block in net:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    with torch.no_grad():
        for number, x in enumerate([*batches()] * 10):
            come(rank, world, f"request {number}", 1, 0.02)
            net(x)


def straggler(rank: int, world: int) -> None:
    """The last rank sleeps in every second step; in the others the first comes last, by nothing to speak of."""
    net = nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    data = list(batches(rank, world)) * 15
    for step, x in enumerate(data):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        come(rank, world, f"step {step}", *((world - 1, 0.03) if step % 2 else (0, 0.0)))
        loss.backward()
        optimizer.step()


def slow_backward(rank: int, world: int) -> None:
    """Rank 0 is slow where C++ adds up gradients: inside backward."""
    net = nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for step, x in enumerate(list(batches(rank, world)) * 10):
        loss = net(x).square().mean()
        loss.register_hook(lambda grad, step=step: come(rank, world, f"backward {step}", 0, 0.02))
        loss.backward()
        optimizer.step()


def gpu_straggler(rank: int, world: int) -> None:
    """Both ranks on one GPU. The last one's host is late in every second step."""
    _on_gpu(rank, lambda step: time.sleep(0.03) if rank == world - 1 and step % 2 else None)


def gpu_slow_device(rank: int, world: int) -> None:
    """The first rank's GPU is slow, which its host never notices: about 20 ms of it turning round."""
    _on_gpu(rank, lambda step: torch.cuda._sleep(30_000_000) if rank == 0 else None)


def _on_gpu(rank: int, before) -> None:
    net = nn.parallel.DistributedDataParallel(model().cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for step, x in enumerate([*batches()] * 15):
        before(step)
        optimizer.zero_grad()
        net(x.cuda()).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    for name in sys.argv[2:]:
        with bitwatt.measure(name, store=sys.argv[1]):
            globals()[name](rank, world)
        dist.barrier()
    dist.destroy_process_group()
