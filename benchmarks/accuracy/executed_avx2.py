"""Measure with the fpcount instrument what torch's CPU kernels execute, and print it beside flops:executed@avx2.

    python benchmarks/accuracy/executed_avx2.py --fpcount DIR --out rows.jsonl    # DIR holds fpcount, fpcount.c, ...

The script starts itself under the instrument (valgrind: AVX2, one thread, small shapes; a minute and a half). Each
program runs once to warm up and once to be measured, phase by phase.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from programs import Program, accumulated, execute, find_bitwatt, ledger_of, network, op, optimizer

UNARY = """exp log1p tanh sigmoid erf sin sqrt rsqrt reciprocal square expm1 log log2 log10 cos tan abs neg sinh cosh atan
asin exp2 erfc ceil round lgamma digamma erfinv logit F.gelu F.silu F.relu F.elu F.softplus F.mish F.hardswish
F.leaky_relu F.logsigmoid F.selu F.celu F.hardsigmoid F.hardtanh F.relu6 F.softsign F.tanhshrink F.glu F.normalize"""
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "erfinv", "asin", "logit", "lgamma", "digamma"}
OPTIMIZERS = """SGD(ps, 0.1)|SGD(ps, 0.1, momentum=0.9)|SGD(ps, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
Adam(ps)|Adam(ps, weight_decay=0.01)|Adam(ps, amsgrad=True)|AdamW(ps)|AdamW(ps, foreach=True)|AdamW(ps, fused=True)
Adam(ps, fused=True)|SGD(ps, 0.1, momentum=0.9, fused=True)|Adagrad(ps, fused=True)|Adam(ps, foreach=True)
RMSprop(ps)|RMSprop(ps, momentum=0.9, centered=True)|RMSprop(ps, foreach=True)|Adagrad(ps)|Adagrad(ps, foreach=True)
Adadelta(ps)|Adadelta(ps, foreach=True)|Adamax(ps)|Adamax(ps, foreach=True)|NAdam(ps)|NAdam(ps, foreach=True)
RAdam(ps)|RAdam(ps, foreach=True)|ASGD(ps)|Rprop(ps)|Adafactor(ps)|SGD(ps, 0.1, momentum=0.9, foreach=True)
SGD(ps, 0.1, foreach=True, weight_decay=0.1)""".replace("\n", "|").split("|")


def element_wise() -> list[Program]:
    found = []
    for shape in ("64, 250", "7, 333", "13, 24, 40"):
        for name in UNARY.split():
            maker = "positive" if name in POSITIVE else "randn"
            if name == "F.glu" and shape == "7, 333":
                continue
            call = f"{name}(x)" if "." in name else f"torch.{name}(x)"
            found.append(op(f"{name} {shape}", f"x = {maker}({shape})", call))
        pair = f"x = randn({shape}); w = positive({shape})"
        for call in (
            "F.gelu(x, approximate='tanh')", "x + w", "x - w", "x * w", "x / w", "torch.add(x, w, alpha=0.3)", "x + 0.5",
            "x * 0.5", "x / 3.0", "1.0 / w", "x ** 2", "x ** 3", "x ** 4", "w ** 0.5", "w ** -0.5", "w ** -1", "w ** 2.5",
            "w ** x", "torch.atan2(x, w)", "torch.addcmul(x, x, w, value=0.5)", "torch.addcdiv(x, x, w, value=0.5)",
            "torch.lerp(x, w, 0.3)", "torch.maximum(x, w)", "torch.where(x > 0, x, w)", "x.clamp(-0.5, 0.5)",
            "torch.hypot(x, w)", "torch.logaddexp(x, w)", "x % w", "x.masked_fill(x > 0, 0.0)", "F.dropout(x, 0.1)",
            "F.dropout(x, 0.5)", "torch.cat([x, w])", "torch.stack([x, w])", "x + w[0]", "x * w[0]", "x - x.mean(-1, True)",
            "torch.complex(x, w).abs()", "x.double().exp().float()", "x.double() * w.double()", "x.rsub(1.0)", "F.threshold(x, 0.1, 0.0)",
        ):  # fmt: skip
            found.append(op(f"{call} {shape}", pair, call))
    return found


def reductions() -> list[Program]:
    found = []
    calls = "sum mean var std norm logsumexp amax max prod cumsum softmax log_softmax cumprod".split()
    for shape in ("64, 250", "7, 333", "300, 17", "9, 64, 48", "16, 1000", "100, 128", "5, 4100", "33, 8"):
        dims = 3 if shape.count(",") == 2 else 2
        for name in calls:
            positive = "positive" if name in {"prod", "cumprod"} else "randn"
            for dim in range(dims):
                if name in {"prod", "cumprod"} and (dims == 3 or dim == 0):
                    continue
                tail = "[0]" if name == "max" else ""
                call = f"x.norm(dim={dim})" if name == "norm" else f"x.{name}({dim}){tail}"
                found.append(op(f"{name} {dim} {shape}", f"x = {positive}({shape})", call))
        for name in ("sum", "mean", "var", "norm", "max"):
            found.append(op(f"{name} all {shape}", f"x = randn({shape})", f"x.{name}()"))
    for shape, groups in (("8, 16, 10, 10", 4), ("4, 24, 7, 9", 8), ("2, 32, 16, 16", 32), ("16, 6, 5, 5", 1)):
        channels = shape.split(", ")[1]
        made = f"x = randn({shape}); w = randn({channels}); b = randn({channels}); r = b.detach() ** 2 + 1; a = r * 0"
        found += [
            op(f"batch_norm {shape}", made, "F.batch_norm(x, a, r, w, b, True)"),
            op(f"batch_norm eval {shape}", made, "F.batch_norm(x, a, r, w, b, False)"),
            op(f"batch_norm no affine {shape}", made, "F.batch_norm(x, None, None, None, None, True)"),
            op(f"group_norm {shape}", made, f"F.group_norm(x, {groups}, w, b)"),
            op(f"instance_norm {shape}", made, "F.instance_norm(x, weight=w, bias=b)"),
            op(f"mean spatial {shape}", made, "x.mean((2, 3))"),
        ]
    for rows, width in ((64, 250), (48, 32), (30, 100), (17, 768), (50, 65), (200, 8)):
        made = f"x = randn({rows}, {width}); w = randn({width}); b = randn({width})"
        found += [
            op(f"layer_norm {rows}x{width}", made, f"F.layer_norm(x, ({width},), w, b)"),
            op(f"layer_norm plain {rows}x{width}", made, f"F.layer_norm(x, ({width},))"),
            op(f"rms_norm {rows}x{width}", made, f"F.rms_norm(x, ({width},), w)"),
            op(f"cosine {rows}x{width}", made, "F.cosine_similarity(x, w, -1)"),
        ]
    made = "x = randn(40, 16, 30); w = randn(16); b = randn(16); r = b.detach() ** 2 + 1; a = r * 0"
    found.append(op("batch_norm 1d 40x16x30", made, "F.batch_norm(x, a, r, w, b, True)"))
    made = "x = randn(64, 50); w = randn(50); b = randn(50); r = b.detach() ** 2 + 1; a = r * 0"
    found.append(op("batch_norm 1d 64x50", made, "F.batch_norm(x, a, r, w, b, True)"))
    return found


def losses() -> list[Program]:
    found = []
    for shape in ("64, 250", "7, 333"):
        rows, width = shape.split(", ")
        made = f"x = randn({shape}); p = positive({shape}); t = const({shape}); q = t.sigmoid(); c = ints({width}, {rows})"
        for call in (
            "F.cross_entropy(x, c)", "F.cross_entropy(x, c, label_smoothing=0.1)", "F.cross_entropy(x, q)", "F.mse_loss(x, t)",
            "F.l1_loss(x, t)", "F.smooth_l1_loss(x, t)", "F.huber_loss(x, t)", "F.binary_cross_entropy(p, q)",
            "F.binary_cross_entropy_with_logits(x, q)", "F.kl_div(x, q, reduction='batchmean')", "F.nll_loss(x, c)",
            "F.nll_loss(x.log_softmax(1), c, reduction='sum')", "F.poisson_nll_loss(x, q)", "F.gaussian_nll_loss(x, t, p)",
            "F.hinge_embedding_loss(x, t.sign())", "F.soft_margin_loss(x, t.sign())", "F.multi_margin_loss(x, c)",
            "F.triplet_margin_loss(x, t, p)", "F.cosine_embedding_loss(x, t, torch.ones(len(x)))",
        ):  # fmt: skip
            found.append(op(f"{call} {shape}", made, call))
    return found


def matrices() -> list[Program]:
    found = []
    sizes = ((32, 64, 48), (32, 40, 64), (32, 64, 10), (17, 33, 29), (100, 100, 100), (5, 200, 7), (48, 32, 128), (1, 64, 64),
             (128, 128, 1), (64, 16, 16), (48, 32, 120), (3, 3, 3), (63, 65, 127), (200, 10, 30), (4, 16, 10), (12, 300, 2))  # fmt: skip
    for m, k, n in sizes:
        found += [
            op(f"linear {m}x{k}x{n}", f"x = randn({m}, {k}); w = randn({n}, {k}); b = randn({n})", "F.linear(x, w, b)"),
            op(f"mm {m}x{k}x{n}", f"x = randn({m}, {k}); w = randn({k}, {n})", "x @ w"),
            op(f"bmm {m}x{k}x{n}", f"x = randn(3, {m}, {k}); w = randn(3, {k}, {n})", "x @ w"),
        ]
    found += [
        op("linear 3-D", "x = randn(4, 12, 40); w = randn(24, 40); b = randn(24)", "F.linear(x, w, b)"),
        op("linear no bias", "x = randn(4, 12, 40); w = randn(24, 40)", "F.linear(x, w)"),
        op("mv", "x = randn(50, 70); w = randn(70)", "x @ w"),
        op("dot", "x = randn(700); w = randn(700)", "x @ w"),
        op("baddbmm", "x = randn(4, 9, 20); w = randn(4, 20, 11); b = randn(4, 9, 11)", "torch.baddbmm(b, x, w)"),
        op("bilinear", "x = randn(9, 20); w = randn(9, 11); b = randn(7, 20, 11)", "F.bilinear(x, w, b)"),
        op("einsum", "x = randn(4, 9, 20); w = randn(4, 13, 20)", "torch.einsum('bik,bjk->bij', x, w)"),
        op("double mm", "x = randn(30, 40).double(); w = randn(40, 50).double()", "x @ w"),
        op("cdist", "x = randn(40, 20); w = randn(30, 20)", "torch.cdist(x, w)"),
        op("cdist small", "x = randn(20, 7); w = randn(18, 7)", "torch.cdist(x, w)"),
    ]
    for n in (60, 24, 100):
        made = f"a = const({n}, {n}); s = a @ a.T + {n} * torch.eye({n}); v = const({n}); b = const({n}, 8); c = const(2 * {n}, {n})"
        for call in ("cholesky(s)", "solve(a, v)", "solve(a, b)", "qr(a)", "qr(c)", "svd(a)", "svdvals(a)", "svd(c, full_matrices=False)",
                     "eigh(s)", "eigvalsh(s)", "inv(a)", "det(a)", "lstsq(c, torch.ones(len(c), 1))", "eig(a)", "matrix_exp(a)", "lu(a)"):  # fmt: skip
            found.append(op(f"linalg.{call} {n}", made, f"torch.linalg.{call}", False))
        for call in ("fft.fft(a)", "fft.rfft(a)", "fft.fft2(a)", "fft.ifft(a)", "fft.irfft(torch.fft.rfft(a))"):
            found.append(op(f"{call} {n}", made, f"torch.{call}", False))
    return found


def spatial() -> list[Program]:
    found = []
    for shape, weight, extra in (
        ("2, 8, 14, 14", "12, 8, 3, 3", ""), ("2, 8, 14, 14", "12, 8, 3, 3", "padding=1"), ("2, 8, 14, 14", "8, 1, 3, 3", "groups=8"),
        ("2, 8, 14, 14", "8, 1, 3, 3", "groups=8, padding=1"), ("2, 3, 17, 17", "8, 3, 3, 3", ""), ("4, 8, 15, 15", "16, 8, 3, 3", "stride=2"),
        ("2, 3, 16, 16", "16, 3, 5, 5", "padding=2"), ("1, 16, 9, 11", "8, 16, 1, 1", ""), ("2, 16, 12, 12", "24, 16, 1, 1", "stride=2"),
        ("2, 8, 12, 12", "8, 4, 3, 3", "groups=2, padding=1"), ("2, 6, 13, 13", "10, 6, 3, 3", "dilation=2"), ("1, 3, 32, 32", "32, 3, 8, 8", "stride=8"),
        ("2, 8, 12, 12", "8, 8, 3, 3", "dilation=2, padding=2"), ("2, 1, 20, 20", "6, 1, 5, 5", ""), ("2, 32, 8, 8", "32, 32, 3, 3", "padding=1"),
        ("1, 16, 16, 16", "32, 16, 3, 3", "padding=1, stride=2"), ("3, 5, 9, 9", "7, 5, 3, 3", "padding=1"), ("2, 3, 24, 24", "16, 3, 7, 7", "padding=3, stride=2"),
        ("2, 64, 4, 4", "64, 64, 3, 3", "padding=1"), ("1, 24, 10, 10", "48, 24, 3, 3", ""), ("2, 16, 8, 8", "16, 1, 3, 3", "groups=16, padding=1, stride=2"),
    ):  # fmt: skip
        made = f"x = randn({shape}); w = randn({weight}); b = randn({weight.split(', ')[0]})"
        found.append(op(f"conv2d {shape} by {weight} {extra}", made, f"F.conv2d(x, w, b, {extra})"))
        fixed = f"x = const({shape}); w = randn({weight})"
        found.append(op(f"conv2d first {shape} by {weight} {extra}", fixed, f"F.conv2d(x, w, None, {extra})"))
    for name, shape, weight, extra in (
        ("conv1d", "2, 8, 40", "12, 8, 3", ""), ("conv1d", "2, 8, 40", "12, 8, 5", "padding=2, stride=2"), ("conv1d", "2, 16, 33", "16, 1, 3", "groups=16, padding=1"),
        ("conv3d", "1, 4, 8, 8, 8", "6, 4, 3, 3, 3", ""), ("conv3d", "1, 8, 6, 7, 8", "8, 8, 3, 3, 3", "padding=1"),
        ("conv_transpose2d", "2, 8, 7, 7", "8, 6, 3, 3", "stride=2"), ("conv_transpose2d", "2, 8, 7, 7", "8, 6, 2, 2", "stride=2"),
        ("conv_transpose2d", "1, 16, 8, 8", "16, 8, 4, 4", "stride=2, padding=1"), ("conv_transpose1d", "2, 8, 20", "8, 6, 4", "stride=2, padding=1"),
    ):  # fmt: skip
        made = f"x = randn({shape}); w = randn({weight})"
        found.append(op(f"{name} {shape} by {weight} {extra}", made, f"F.{name}(x, w, None, {extra})"))
    for shape in ("2, 8, 14, 14", "3, 5, 13, 17", "1, 16, 24, 24"):
        for call in (
            "F.avg_pool2d(x, 2)", "F.avg_pool2d(x, 3, 1, 1)", "F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)", "F.max_pool2d(x, 2)",
            "F.max_pool2d(x, 3, 2, 1)", "F.adaptive_avg_pool2d(x, 1)", "F.adaptive_avg_pool2d(x, 3)", "F.adaptive_max_pool2d(x, 2)", "F.lp_pool2d(x, 2, 2)",
            "F.interpolate(x, scale_factor=2, mode='bilinear')", "F.interpolate(x, scale_factor=2)", "F.interpolate(x, size=(9, 30), mode='bilinear')",
            "F.interpolate(x, scale_factor=2, mode='bicubic')", "F.pixel_shuffle(x[:, :4], 2)", "F.pad(x, (1, 1, 1, 1))", "F.unfold(x, 3)",
            "F.grid_sample(x, torch.rand(len(x), 6, 7, 2) * 2 - 1)", "F.local_response_norm(x, 3)", "x.flip(-1)", "x.permute(0, 2, 3, 1).contiguous()",
        ):  # fmt: skip
            found.append(op(f"{call} {shape}", f"x = randn({shape})", call))
    found += [op("avg_pool1d", "x = randn(3, 8, 40)", "F.avg_pool1d(x, 4)"), op("max_pool1d", "x = randn(3, 8, 40)", "F.max_pool1d(x, 4)")]
    return found


def sequences() -> list[Program]:
    found = []
    for batch, heads, length, dim in ((2, 4, 48, 16), (1, 2, 24, 8), (2, 2, 100, 32), (1, 1, 300, 16), (2, 3, 33, 20), (1, 2, 17, 64), (2, 2, 64, 64)):
        make = f"randn({batch}, {heads}, {length}, {dim})"
        setup = f"q = {make}; k = {make}; v = {make}; m = torch.zeros({length}, {length}); z = m == 0"
        for extra in ("", ", is_causal=True", ", attn_mask=m", ", attn_mask=z", ", dropout_p=0.1"):
            call = f"F.scaled_dot_product_attention(q, k, v{extra})"
            found.append(op(f"sdpa {batch}x{heads}x{length}x{dim}{extra}", setup, call))
    cross = "q = randn(2, 2, 20, 16); k = randn(2, 2, 70, 16); v = randn(2, 2, 70, 16)"
    found.append(op("sdpa cross", cross, "F.scaled_dot_product_attention(q, k, v)"))
    found.append(op("sdpa gqa", "q = randn(2, 4, 20, 16); k = randn(2, 2, 20, 16); v = randn(2, 2, 20, 16)",
                    "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)"))  # fmt: skip
    for kind in ("LSTM", "GRU", "RNN"):
        for inputs, hidden, layers, length, batch, extra in (
            (16, 32, 1, 7, 4, ""), (16, 32, 2, 5, 4, ", bidirectional=True"), (10, 20, 1, 9, 3, ""), (32, 32, 2, 12, 8, ""), (24, 48, 1, 6, 1, ""),
        ):  # fmt: skip
            setup = f"m = nn.{kind}({inputs}, {hidden}, {layers}{extra}); x = randn({length}, {batch}, {inputs})"
            found.append(op(f"{kind} {inputs}-{hidden} {layers} layers {length}x{batch}{extra}", setup, "m(x)[0]"))
            if extra == "":
                frozen = setup + "; m.requires_grad_(False); x = x.detach()"
                found.append(op(f"{kind} inference {inputs}-{hidden} {layers} layers {length}x{batch}", frozen, "m(x)[0]", False))
    found += [
        op("LSTMCell", "m = nn.LSTMCell(16, 32); x = randn(5, 16)", "m(x)[0]"),
        op("GRUCell", "m = nn.GRUCell(16, 32); x = randn(5, 16)", "m(x)"),
        op("embedding", "w = randn(200, 32); i = ints(200, 6, 20)", "F.embedding(i, w)"),
        op("embedding wide", "w = randn(50, 100); i = ints(50, 300)", "F.embedding(i, w)"),
        op("embedding_bag", "w = randn(200, 32); i = ints(200, 6, 20)", "F.embedding_bag(i, w)"),
        op("multi-head attention", "m = nn.MultiheadAttention(32, 4, batch_first=True); x = randn(2, 20, 32)", "m(x, x, x)[0]"),
        op("index_select", "x = randn(50, 30); i = ints(50, 70)", "x[i]"),
        op("gather", "x = randn(50, 30); i = ints(50, 20, 30)", "x.gather(0, i)"),
        op("scatter_add", "x = randn(50, 30); w = randn(20, 30); i = ints(50, 20, 30)", "x.scatter_add(0, i, w)"),
        op("index_add", "x = randn(50, 30); w = randn(20, 30); i = ints(50, 20)", "x.index_add(0, i, w)"),
        op("sort", "x = randn(50, 30)", "x.sort(-1)[0]"),
        op("topk", "x = randn(50, 30)", "x.topk(5)[0]"),
    ]  # fmt: skip
    return found


def training() -> list[Program]:
    ce, shapes = "F.cross_entropy(y, t)", ('(100, 200)', '(33, 7)', '(50,)')
    found = [optimizer(f"{kind} many", kind, *shapes) for kind in OPTIMIZERS]
    found += [optimizer(f"{kind} one", kind, "(77, 99)", warm=2) for kind in OPTIMIZERS]
    clip = Program("clip_grad_norm", "ps = [parameter(s) for s in [(100, 200), (33, 7), (50,)]]",
                   {"optimizer": "nn.utils.clip_grad_norm_(ps, 0.1)"})  # fmt: skip
    mlp = "m = nn.Sequential(nn.Linear({0}, {1}), {2}, nn.Linear({1}, {1}), {2}, nn.Linear({1}, {3})); x = const({4}, {0}); t = ints({3}, {4})"
    flat = "F.cross_entropy(y.flatten(0, 1), t.flatten())"
    found += [
        clip,
        network("mlp relu", mlp.format(40, 64, "nn.ReLU()", 10, 32), ce, "Adam(m.parameters())"),
        network("mlp tanh", mlp.format(30, 50, "nn.Tanh()", 7, 20), ce, "SGD(m.parameters(), 0.1)"),
        network("mlp gelu dropout", mlp.format(33, 100, "nn.Sequential(nn.GELU(), nn.Dropout(0.1))", 12, 17), ce, "AdamW(m.parameters())"),
        network("cnn padded", "m = ConvNet(3, 8, 16, 24); x = const(4, 3, 24, 24); t = ints(10, 4)", ce, "SGD(m.parameters(), 0.1, momentum=0.9)"),
        network("cnn unpadded", "m = ConvNet(1, 6, 12, padding=0); x = const(3, 1, 28, 28); t = ints(10, 3)", ce, "Adam(m.parameters())"),
        network("cnn batch norm", "m = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), "
                "nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)); x = const(4, 3, 17, 17); t = ints(10, 4)", ce, "SGD(m.parameters(), 0.1, momentum=0.9)"),
        network("resnet blocks", "m = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), Block(8, 8), Block(8, 16, 2), "
                "nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)); x = const(2, 3, 16, 16); t = ints(10, 2)", ce, "SGD(m.parameters(), 0.1, momentum=0.9)"),
        network("encoder LM", "m = EncoderLM(120, 32, 4, 2, 128, mask=False); x = ints(120, 2, 24); t = ints(120, 2, 24)", flat, "AdamW(m.parameters())"),
        network("encoder LM masked", "m = EncoderLM(90, 48, 3, 1, 96, drop=0.1); x = ints(90, 3, 31); t = ints(90, 3, 31)", flat, "AdamW(m.parameters(), fused=True)"),
        network("vit", "m = ViT(16, 4, 24, 2, 2); x = const(2, 3, 16, 16); t = ints(10, 2)", ce, "AdamW(m.parameters())"),
        network("lstm", "m = LSTMClassifier(20, 32); x = const(6, 11, 20); t = ints(10, 6)", ce, "Adam(m.parameters())"),
        network("gru", "m = LSTMClassifier(12, 24, 2, 'GRU'); x = const(4, 9, 12); t = ints(10, 4)", ce, "RMSprop(m.parameters())"),
        network("autoencoder", "m = nn.Sequential(nn.Linear(50, 20), nn.SiLU(), nn.LayerNorm(20), nn.Linear(20, 50), nn.Sigmoid()); x = positive(24, 50).detach(); "
                "t = x", "F.binary_cross_entropy(y, t)", "Adam(m.parameters(), fused=True)"),
        network("mobile block", "m = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish(), nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16), nn.ReLU6(), "
                "nn.Conv2d(16, 24, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 5)); x = const(2, 3, 20, 20); t = ints(5, 2)", ce, "RMSprop(m.parameters(), momentum=0.9)"),
        network("decoder gan", "m = nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()); "
                "x = const(2, 16, 5, 5); t = const(2, 3, 20, 20)", "F.mse_loss(y, t)", "Adam(m.parameters(), betas=(0.5, 0.999))"),
    ]  # fmt: skip
    return found


def programs() -> list[Program]:
    return [*element_wise(), *reductions(), *losses(), *matrices(), *spatial(), *sequences(), *training()]
