"""Real launchers: Ray Train and Data, submitit, accelerate, torch.multiprocessing, and bitwatt's own command line."""

import sys
import textwrap

import pytest
from launching import run

import bitwatt
from bitwatt.reports.ranks import render

TRAIN = """
import os, time, torch, torch.distributed as dist
from torch import nn

def train(rank=None, world=None):
    torch.set_num_threads(1)
    if rank is not None:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0" if world is None else str(world[1]))
        dist.init_process_group("gloo", rank=rank, world_size=world[0])
    elif not dist.is_initialized():
        dist.init_process_group("gloo")
    net = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    store = dist.distributed_c10d._get_default_store()
    for step in range(30):
        loss = net(torch.randn(8, 64)).sum()
        if dist.get_rank() == 1:  # it comes 30 ms after the other, however late that is
            store.wait([f"step {step}"])
            time.sleep(0.03)
        else:
            store.set(f"step {step}", "here")
        loss.backward()
        optimizer.step()
"""
#: forward of a linear layer with 8 rows on each of two ranks, 30 times: 2 * 8 * 64 * 64 + 8 * 64 for the bias
FORWARD = 2 * 30 * (2 * 8 * 64 * 64 + 8 * 64)


def script(folder, text: str) -> str:
    path = folder / "program.py"
    path.write_text(TRAIN + textwrap.dedent(text))
    return str(path)


def check(store, name: str) -> None:
    job = bitwatt.join(name, store)
    assert [part.number for part in job.parts] == [0, 1]
    assert job.axes == {"data": (2, "DistributedDataParallel")}
    assert job.phases["forward"].once[0] == FORWARD
    assert job.phases["optimizer"].repeated[0] * 2 == job.phases["optimizer"].total[0]
    assert "rank 1 held up " in render(job)


def test_bitwatt_run_torchrun_measures_every_rank_and_tells_of_all(tmp_path):
    program = script(tmp_path, "train()")
    done = run(
        sys.executable, "-m", "bitwatt", "run", "--store", tmp_path,
        "torchrun", "--standalone", "--nproc-per-node", 2, program,
    )  # fmt: skip
    check(tmp_path, "program")
    assert done.stderr.count("2 of 2 ranks on 1 node · data 2 (DistributedDataParallel)") == 1
    assert "rank 1 held up " in done.stderr


def test_torchrun_of_bitwatt_run_is_told_by_the_first_rank_alone(tmp_path):
    program = script(tmp_path, "train()")
    done = run(
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2,
        "-m", "bitwatt", "run", "--store", tmp_path, program,
    )  # fmt: skip
    check(tmp_path, "program")
    assert done.stderr.count("2 of 2 ranks on 1 node") == 1


@pytest.mark.slow
def test_a_program_that_spawns_its_ranks_itself(tmp_path):
    program = script(
        tmp_path,
        """
        if __name__ == "__main__":
            import socket
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            torch.multiprocessing.spawn(train, ((2, port),), nprocs=2)
        """,
    )
    done = run(sys.executable, "-m", "bitwatt", "run", "--store", tmp_path, program)
    check(tmp_path, "program")
    assert "2 of 2 ranks on 1 node" in done.stderr


@pytest.mark.slow
def test_accelerate_launch(tmp_path):
    pytest.importorskip("accelerate")
    # Without GPUs too, this is how it starts several processes without MPI.
    program = script(tmp_path, "from accelerate import Accelerator\nAccelerator(cpu=True)\ntrain()")
    run(
        sys.executable, "-m", "bitwatt", "run", "--store", tmp_path,
        "accelerate", "launch", "--multi_gpu", "--num_processes", 2,
        "--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", 0, program,
    )  # fmt: skip
    check(tmp_path, "program")


@pytest.mark.slow
def test_submitit_on_this_machine(tmp_path):
    pytest.importorskip("submitit")
    script(tmp_path, "")
    text = f"""
        import socket, sys
        sys.path.insert(0, {str(tmp_path)!r})
        import submitit, bitwatt.submitit
        from program import train

        def task(port):
            environment = submitit.JobEnvironment()
            train(environment.global_rank, (environment.num_tasks, port))

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        executor = submitit.LocalExecutor({str(tmp_path / "logs")!r})
        executor.update_parameters(tasks_per_node=2, timeout_min=3)
        executor.submit(bitwatt.submitit.measured(task, store={str(tmp_path)!r}), port).results()
    """
    (tmp_path / "submit.py").write_text(textwrap.dedent(text))
    run(sys.executable, tmp_path / "submit.py")
    check(tmp_path, "task")


@pytest.mark.slow
def test_ray_train_and_ray_data(tmp_path):
    pytest.importorskip("ray")
    text = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import bitwatt.ray, ray, ray.data
        from program import train
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        def embed(batch):
            import torch
            torch.ones(4, 5) @ torch.ones(5, 6)
            return batch

        path = ":".join([{str(tmp_path)!r}, *filter(None, sys.path)])
        ray.init(num_cpus=3, include_dashboard=False, object_store_memory=100_000_000,
                 runtime_env={{"env_vars": {{"PYTHONPATH": path}}}})
        callback = bitwatt.ray.Callback("ray-train", store={str(tmp_path)!r})
        TorchTrainer(
            train, scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path={str(tmp_path / "results")!r}, callbacks=[callback]),
        ).fit()
        data = ray.data.range(64, override_num_blocks=8)
        data.map_batches(bitwatt.ray.measured(embed, store={str(tmp_path)!r}), batch_size=8).materialize()
    """
    script(tmp_path, "")
    (tmp_path / "on_ray.py").write_text(textwrap.dedent(text))
    run(sys.executable, tmp_path / "on_ray.py")
    check(tmp_path, "ray-train")
    job = bitwatt.join("embed", tmp_path)
    assert job.total.total[0] == 8 * 2 * 4 * 5 * 6  # eight blocks, wherever each of them ran
    assert job.world == len(job.parts)
