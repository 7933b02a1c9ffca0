"""A small Llama, quantised by libraries that people use: what do its weights carry, and what multiplies them?

    pip install transformers torchao optimum-quanto bitsandbytes
    python examples/quantised_llm.py

The model has random weights, so nothing is downloaded; counts depend on sizes and formats, not on values.
"""

import copy

import torch
from bitsandbytes.nn import Linear4bit
from optimum.quanto import freeze, qint4, quantize
from torch import nn
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_
from transformers import LlamaConfig, LlamaForCausalLM

import bitwatt
from bitwatt.units import format_bytes, format_count

TOKENS = 64


def nf4(model: nn.Module) -> None:
    """As bitsandbytes loads it: every linear layer but the last in nf4, computed in bfloat16."""
    for name, layer in list(model.model.named_modules()):
        if isinstance(layer, nn.Linear):
            packed = Linear4bit(layer.in_features, layer.out_features, False, torch.bfloat16, quant_type="nf4")
            packed.load_state_dict(layer.state_dict())
            model.model.set_submodule(name, packed.to("cpu"))


def quanto(model: nn.Module) -> None:
    quantize(model, weights=qint4, exclude="lm_head")
    freeze(model)


WAYS = {
    "bfloat16": lambda model: None,
    "int8 weights (torchao)": lambda model: quantize_(model.model, Int8WeightOnlyConfig()),
    "int8 both (torchao)": lambda model: quantize_(model.model, Int8DynamicActivationInt8WeightConfig()),
    "int4 weights (quanto)": quanto,
    "nf4 weights (bitsandbytes)": nf4,
}


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # layers are small: threads would wait for each other
    config = LlamaConfig(vocab_size=2_048, hidden_size=256, intermediate_size=704, num_hidden_layers=4,
                         num_attention_heads=8, num_key_value_heads=4)  # fmt: skip
    original = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    ids = torch.randint(0, config.vocab_size, (1, TOKENS))
    print(f"{'':<28}{'bits':>6}{'weights':>10}{'BOPs':>10}{'executed':>10}{'FLOPs':>10}")
    for name, change in WAYS.items():
        model = copy.deepcopy(original)
        change(model)
        with bitwatt.measure(name, keep=False) as session, torch.no_grad():
            model(ids)
        run = session.run
        layer = run.layers["model.layers.0.mlp.down_proj"]
        bits = 8 * layer.weight_bytes / layer.parameters  # with its share of scales
        size = sum(layer.weight_bytes for layer in run.layers.values())
        amounts = [bitwatt.totals(run, model).total for model in ("bops:product", "bops:executed", "flops")]
        print(f"{name:<28}{bits:>6.4g}{format_bytes(size):>10}", *(f"{format_count(amount):>9}" for amount in amounts))


if __name__ == "__main__":
    main()
