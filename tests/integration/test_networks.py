"""Whole training steps: the same work on the CPU and on fake tensors, phase by phase."""

from __future__ import annotations

import pytest
import torch

import bitwatt
from backends.measuring import calls, macs, measured
from networks import NETWORKS


@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_training_step_is_the_closed_form_and_misses_nothing(name: str) -> None:
    program = NETWORKS[name]("cpu")
    run = measured(program.step)
    assert macs(run) == {"forward": program.forward_macs, "backward": program.backward_macs}
    assert bitwatt.totals(run).missing == {}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_measured_and_estimated_have_the_same_fingerprint(name: str) -> None:
    def build_and_step() -> None:
        NETWORKS[name]("cpu").step()

    real, fake = measured(build_and_step), bitwatt.estimate(build_and_step)
    assert real.fingerprint.digest == fake.fingerprint.digest
    flops = bitwatt.totals(real, "flops").total
    assert bitwatt.totals(fake, "flops").total == pytest.approx(flops, rel=0.001)


@pytest.mark.parametrize("name", ["mlp", "resnet18"])  # the encoder compares its mask with .item(), which meta refuses
def test_on_meta_the_fingerprint_is_that_of_the_cpu(name: str) -> None:
    digests = {
        measured(lambda device=device: NETWORKS[name](device).step()).fingerprint.digest for device in ("cpu", "meta")
    }
    assert len(digests) == 1


def test_one_changed_size_dtype_or_step_changes_the_digest() -> None:
    def steps(n: int, batch: int = 64) -> None:
        program = NETWORKS["mlp"]("cpu", batch)
        for _ in range(n):
            program.step()

    def halved() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            steps(1)

    runs = [measured(lambda: steps(1)), measured(lambda: steps(2)), measured(lambda: steps(1, 65)), measured(halved)]
    assert len({run.fingerprint.digest for run in runs}) == 4


def test_the_loss_inside_a_hugging_face_model_is_loss() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=100, bos_token_id=0, eos_token_id=0))
    ids = torch.randint(0, 100, (2, 16))
    run = measured(lambda: model(input_ids=ids, labels=ids).loss.backward())
    assert calls(run, "loss")["aten.nll_loss_forward"] == calls(run, "loss")["aten._log_softmax"] == 1
    assert "aten.nll_loss_forward" not in calls(run, "forward")
    assert bitwatt.totals(run).missing == {}


def test_generating_text_is_inference_and_sampling_is_other() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=100, bos_token_id=0, eos_token_id=0))
    model.eval()
    ids = torch.randint(1, 100, (2, 16))
    run = measured(lambda: model.generate(ids, max_new_tokens=3, min_new_tokens=3, do_sample=True, pad_token_id=0))
    assert set(macs(run)) == {"inference"}
    assert calls(run, "other")["aten.multinomial"] == 3
    assert bitwatt.totals(run).missing == {}
