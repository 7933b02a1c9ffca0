"""What would one training step of a Llama with 70 billion parameters compute? Estimated on fake tensors.

    python examples/estimate_llama.py
    python examples/estimate_llama.py --layers 8 --tokens 1024      # a smaller one, in a few seconds

The sizes are those of Llama-2-70B (Touvron et al. 2023, arXiv:2307.09288). Nothing is downloaded, no weight is stored,
nothing is computed.
"""

import argparse
import resource
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import bitwatt
from bitwatt.units import format_bytes, format_count


def training_step(config: LlamaConfig, tokens: int) -> None:
    """Forward, backward and AdamW on one sequence. The model is made in here, so its weights are fakes too."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        model = LlamaForCausalLM(config)
        optimizer = torch.optim.AdamW(model.parameters())
        ids = torch.randint(0, config.vocab_size, (1, tokens))
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
    finally:
        torch.set_default_dtype(torch.float32)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--layers", type=int, default=80)
    options.add_argument("--tokens", type=int, default=4096)
    chosen = options.parse_args()
    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=8192,
        intermediate_size=28_672,
        num_hidden_layers=chosen.layers,
        num_attention_heads=64,
        num_key_value_heads=8,
        max_position_embeddings=4096,
    )

    began = time.perf_counter()
    run = bitwatt.estimate(training_step, config, chosen.tokens)
    flops = bitwatt.totals(run, "flops")
    took = time.perf_counter() - began
    # States of the optimizer stand among the layers, too.
    parameters = sum(layer.parameters for layer in run.layers.values() if layer.kind != "optimizer")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux gives kilobytes

    print(f"{format_count(parameters)} parameters, {chosen.tokens:,} tokens: {flops.coverage}")
    for phase, amount in flops.by("phase").items():
        print(f"  {phase:<10} {format_count(amount, 'FLOP'):>12}")
    print(f"  {'total':<10} {format_count(flops.total, 'FLOP'):>12}")
    six = 6 * parameters * chosen.tokens
    both = bitwatt.totals(run, "macs").by("phase")
    matrix = 2 * (both["forward"] + both["backward"])
    print(f"6·parameters·tokens is {format_count(six, 'FLOP')}; matrix products are {matrix / six:.3f} of that")
    print(f"estimated in {took:.0f} s; the process used {format_bytes(peak)} at most")


if __name__ == "__main__":
    main()
