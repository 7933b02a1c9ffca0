"""estimate(): nothing is computed, and the count is that of the real thing."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import bitwatt
from backends.measuring import BACKWARD, FC1, FC2, Net, batch, macs

STEP = {"forward": FC1 + FC2, "backward": BACKWARD}


def train(net: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    F.cross_entropy(net(x), y).backward()
    optimizer.step()


def test_models_optimizers_and_tensors_may_be_passed_and_stay_untouched() -> None:
    net, (x, y) = Net(), batch()
    before = [parameter.clone() for parameter in net.parameters()]
    run = bitwatt.estimate(train, net, torch.optim.Adam(net.parameters()), x, y)
    assert macs(run) == STEP
    assert all(parameter.grad is None for parameter in net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def test_a_module_itself_may_be_estimated() -> None:
    net, (x, _) = Net(), batch()
    assert macs(bitwatt.estimate(net, x)) == {"forward": FC1 + FC2}


def test_a_model_built_inside_may_be_moved_and_copied() -> None:
    def build() -> None:
        import copy

        net = copy.deepcopy(Net()).to(torch.bfloat16)
        net(batch()[0].bfloat16()).sum().backward()

    run = bitwatt.estimate(build)
    assert macs(run) == STEP
    assert macs(run, "precision") == {"bfloat16": sum(STEP.values())}


def test_a_real_model_from_outside_is_refused_with_advice() -> None:
    net, (x, _) = Net(), batch()
    with pytest.raises(bitwatt.BitwattError, match="Pass it as an argument"):
        bitwatt.estimate(lambda: net(x))


def test_a_branch_on_values_is_refused_with_advice() -> None:
    with pytest.raises(bitwatt.BitwattError, match="needs the values"):
        bitwatt.estimate(lambda: torch.randn(3).sum().item() > 0)


def test_numbers_read_from_known_tensors_are_no_obstacle() -> None:
    def rates() -> None:
        assert [round(p.item(), 1) for p in torch.linspace(0, 1, 3)] == [0.0, 0.5, 1.0]

    bitwatt.estimate(rates)


def test_a_llama_of_70_billion_parameters_fits_a_laptop() -> None:
    # In a process of its own, to see its memory: under a minute of one core and 4 GB.
    program = """
        import resource, time, torch, bitwatt
        from transformers import LlamaConfig, LlamaForCausalLM

        def step():
            torch.set_default_dtype(torch.bfloat16)
            config = LlamaConfig(
                hidden_size=8192, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8,
                intermediate_size=28672, vocab_size=128256,
            )
            model = LlamaForCausalLM(config)
            optimizer = torch.optim.AdamW(model.parameters())
            ids = torch.randint(0, 128256, (1, 4096))
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            optimizer.step()

        began = time.process_time()
        run = bitwatt.estimate(step)
        spent = time.process_time() - began
        macs = bitwatt.totals(run, "macs")
        phases = macs.by("phase")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(phases["forward"], phases["backward"], len(macs.missing), spent, memory)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    forward, backward, missing, spent, memory = done.stdout.split()
    # 4096 tokens: q and o, k and v (8 of 64 heads), three of the MLP; scores and values; the head
    layer = 4096 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672) + 2 * 4096**2 * 8192
    assert int(forward) == 80 * layer + 4096 * 8192 * 128256
    assert int(backward) == 2 * int(forward)
    assert missing == "0"
    assert float(spent) < 60
    assert float(memory) < 4  # GB
