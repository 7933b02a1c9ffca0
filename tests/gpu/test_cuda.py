"""On a CUDA device: the same counts as on the CPU, phases and layers found on autograd's own threads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import bitwatt
from backends.measuring import BACKWARD, FC1, FC2, Net, batch, calls, macs, measured
from networks import NETWORKS, encoder_lm

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def cuda_net() -> tuple[Net, torch.Tensor, torch.Tensor]:
    x, y = batch()
    return Net().cuda(), x.cuda(), y.cuda()


def test_backward_on_cudas_own_threads_has_its_phase_and_layer() -> None:
    net, x, y = cuda_net()
    run = measured(lambda: F.cross_entropy(net(x), y).backward())
    assert macs(run, "phase", "scope") == {
        ("forward", "fc1"): FC1,
        ("forward", "fc2"): FC2,
        ("backward", "fc1"): FC1,
        ("backward", "fc2"): 2 * FC2,
    }
    assert calls(run, "loss")["aten.nll_loss_forward"] == 1
    assert not {row.phase for row in run.ledger} - {"forward", "loss", "backward", "other"}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_cpu_cuda_and_estimate_agree(name: str) -> None:
    runs = {}
    for device in ("cpu", "cuda"):
        program = NETWORKS[name](device)
        program.step()  # the first step of SGD with momentum does less
        runs[device] = measured(program.step)
        assert macs(runs[device]) == {"forward": program.forward_macs, "backward": program.backward_macs}
    totals = {device: bitwatt.totals(run, "flops") for device, run in runs.items()}
    assert totals["cuda"].missing == totals["cpu"].missing == {}
    for phase, flops in totals["cpu"].by("phase").items():
        assert totals["cuda"].by("phase").get(phase, 0) == pytest.approx(flops, rel=0.001, abs=200)
    assert totals["cuda"].total == pytest.approx(totals["cpu"].total, rel=0.001)
    assert runs["cuda"].fingerprint.digest == runs["cpu"].fingerprint.digest


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_every_attention_kernel_prices_the_same(causal: bool, dropout: float) -> None:
    def attend(backend: Any) -> dict[str, int]:
        q, k, v = (torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in "qkv")

        def step() -> None:
            with sdpa_kernel(backend):
                F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=dropout).sum().backward()

        run = measured(step)
        assert bitwatt.totals(run).missing == {}
        return {phase: n for phase, n in bitwatt.totals(run, "flops").by("phase").items() if n}

    math = attend(SDPBackend.MATH)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        fused = attend(backend)
        for phase, flops in math.items():
            assert fused[phase] == pytest.approx(flops, rel=0.001), (backend, phase)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_every_variant_of_an_optimizer_prices_the_same(kind: Any) -> None:
    def price(**options: Any) -> int:
        net, x, y = cuda_net()
        optimizer = kind(net.parameters(), lr=0.01, **({"momentum": 0.9} if kind is torch.optim.SGD else {}), **options)

        def step() -> None:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()

        step()
        return bitwatt.totals(measured(step), "flops").by("phase")["optimizer"]

    single = price(foreach=False)
    assert price(foreach=True) == pytest.approx(single, rel=0.01)
    assert price(fused=True) == pytest.approx(single, rel=0.01)


def test_checkpointing_on_cuda() -> None:
    for reentrant in (False, True):
        net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).cuda()
        x = torch.randn(32, 8, device="cuda", requires_grad=True)
        run = measured(lambda net=net, x=x, r=reentrant: checkpoint(net, x, use_reentrant=r).sum().backward())
        one = 32 * 8 * 8
        found = macs(run)
        # versions of torch differ in how early they stop recomputing, so their own counter says how much ran
        with FlopCounterMode(display=False) as counter:
            checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        assert 2 * sum(found.values()) == counter.get_total_flops()
        assert (found["forward"], found["backward"]) == (2 * one, 4 * one)
        assert set(macs(run, "scope")) == {"0", "2"}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_agree_with_the_cpu(kind: Any) -> None:
    def count(device: str) -> dict[str, int]:
        layer = kind(16, 32, 2, batch_first=True, bidirectional=True).to(device)
        x = torch.randn(4, 7, 16, device=device, requires_grad=True)
        run = measured(lambda: layer(x)[0].sum().backward())
        assert bitwatt.totals(run).missing == {}
        return macs(run)

    cpu, cuda = count("cpu"), count("cuda")
    assert cuda["forward"] == cpu["forward"]
    assert cuda["backward"] == pytest.approx(cpu["backward"], rel=0.15)  # the CPU skips dh of the zero first state


def test_autocast_is_counted_in_the_precision_it_ran_in() -> None:
    net, x, y = cuda_net()

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        loss.backward()

    run = measured(step)
    by = bitwatt.totals(run, "macs").by("precision")
    assert by == {"bfloat16": FC1 + FC2 + BACKWARD}


def test_low_precision_products() -> None:
    a8 = torch.randint(-5, 5, (64, 64), device="cuda", dtype=torch.int8)
    f8 = torch.randn(64, 64, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    assert macs(measured(lambda: torch._int_mm(a8, a8)), "precision") == {"int8": 64**3}
    scaled = measured(lambda: torch._scaled_mm(f8, f8.t(), one, one, out_dtype=torch.bfloat16))
    assert macs(scaled, "precision") == {"float8_e4m3fn": 64**3}


def test_flex_attention_forward_and_backward() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q = torch.randn(1, 2, 256, 64, device="cuda", requires_grad=True)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cuda")
    run = measured(lambda: flex_attention(q, q, q, block_mask=mask).sum().backward())
    found = macs(run, "op")
    assert found["higher_order.flex_attention"] == 2 * 2 * 256 * 256 * 64
    assert found["higher_order.flex_attention_backward"] == 4 * 2 * 256 * 256 * 64


def test_a_triton_kernel_launched_by_hand_is_named_and_takes_a_rule() -> None:
    from gpu.triton_kernels import add

    x = torch.randn(1000, device="cuda")
    run = measured(lambda: add(x, x))
    assert bitwatt.totals(run).missing == {"triton.add_kernel": 1}

    @bitwatt.rule("triton.add_kernel")
    def rule(n: int, x: bitwatt.TensorSpec, **_: Any) -> bitwatt.Work:
        return bitwatt.Work.of(x.precision, add=n)

    assert bitwatt.totals(run, "flops").by("op")["triton.add_kernel"] == 1000


def test_compiled_training_is_counted_and_compiles_afterwards() -> None:
    net, x, y = cuda_net()
    compiled = torch.compile(net)
    F.cross_entropy(compiled(x), y).backward()
    assert macs(measured(lambda: F.cross_entropy(compiled(x), y).backward())) == {
        "forward": FC1 + FC2,
        "backward": BACKWARD,
    }


def test_an_encoder_in_bf16_with_flash_attention() -> None:
    program = encoder_lm("cuda", dropout=0.0)
    program.model.to(torch.bfloat16)
    run = measured(program.step)
    assert macs(run) == {"forward": program.forward_macs, "backward": program.backward_macs}
