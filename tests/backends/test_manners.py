"""bitwatt leaves torch exactly as it was, and never changes or breaks the program."""

from __future__ import annotations

import concurrent.futures.thread as pools
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
import torch.nn.modules.module as module
import torch.optim.optimizer as optimizer
import torch.utils.data.dataloader as dataloader
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import bitwatt
from backends.measuring import FC1, FC2, Net, batch, calls, macs, measured
from bitwatt.backends.torch.mode import _COMPOSITE, CountingMode


def state_of_torch() -> dict[str, object]:
    import torch._dynamo.eval_frame as eval_frame

    hooks = {name: hook for name, hook in vars(module).items() if name.startswith("_global")}
    return {
        "module hooks": {name: dict(hook) for name, hook in hooks.items() if isinstance(hook, dict)},
        "optimizer hooks": (dict(optimizer._global_optimizer_pre_hooks), dict(optimizer._global_optimizer_post_hooks)),
        "engine": torch.autograd._engine_run_backward,
        "loader": (
            dataloader._BaseDataLoaderIter.__next__,
            dataloader._BaseDataLoaderIter.__init__,
            dataloader._BaseDataLoaderIter._next_index,
            dataloader._MultiProcessingDataLoaderIter.__init__,
            torch.utils.data._utils.worker._worker_loop,
        ),
        "threads": (threading.Thread.start, pools._WorkItem.run, pools._WorkItem.__init__),
        "modes": list(_get_current_dispatch_mode_stack()),
        "mode flags": vars(torch.utils._python_dispatch)["_is_in_torch_dispatch_mode"],
        "imports": list(sys.meta_path),
        "stance": eval_frame._stance,
    }


def work() -> None:
    net, (x, y) = Net(), batch()
    F.cross_entropy(net(x), y).backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()


@pytest.mark.parametrize("problem", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_torch_is_as_before_however_the_session_ends(problem: type[BaseException] | None) -> None:
    import torch._dynamo  # noqa: F401  # so that its stance can be compared

    work()
    before = state_of_torch()
    try:
        with bitwatt.measure(keep=False) as session:
            work()
            if problem:
                raise problem
    except BaseException as error:
        if problem is None or not isinstance(error, problem):
            raise
    assert state_of_torch() == before
    assert macs(session.run)["forward"] == FC1 + FC2


def test_an_exception_inside_forward_and_backward_leaves_torch_as_before() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x.clone()

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            raise ValueError("in backward")

    before = state_of_torch()
    net, (x, _) = Net(), batch()
    for broken in (lambda: net(x[:, :3]), lambda: Fails.apply(net(x)).sum().backward()):
        with pytest.raises((RuntimeError, ValueError)), bitwatt.measure(keep=False):
            broken()
    assert state_of_torch() == before


def test_results_are_bit_for_bit_the_same() -> None:
    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        net, (x, y) = nn.Sequential(Net(), nn.Dropout(0.5)), batch()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            sgd.zero_grad()
            F.cross_entropy(net(x), y).backward()
            sgd.step()
        return [p.detach().clone() for p in net.parameters()]

    plain = train()
    with bitwatt.measure(keep=False):
        watched = train()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


_ACTIVATIONS = [
    nn.SiLU, nn.Mish, nn.GELU, nn.ELU, nn.CELU, nn.SELU, nn.Softplus, nn.Softsign, nn.Sigmoid, nn.Tanh, nn.LogSigmoid,
    nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.LeakyReLU, nn.PReLU, nn.Tanhshrink, nn.Softshrink, nn.GLU,
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", _ACTIVATIONS)
def test_gradients_of_activations_are_bit_for_bit_the_same(kind: type[nn.Module], dtype: torch.dtype) -> None:
    """Where torch has a kernel and a composition of others for the same op, the kernel is what runs without us."""

    def gradient() -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.randn(16, 64, dtype=dtype, requires_grad=True)
        y = kind().to(dtype)(x)
        y.backward(torch.randn_like(y))
        assert x.grad is not None
        return x.grad

    plain = gradient()
    with bitwatt.measure(keep=False, meter=False, exactness="always"):
        watched = gradient()
    assert torch.equal(plain, watched)


def test_no_op_with_a_kernel_of_its_own_is_taken_apart() -> None:
    def there(name: str, key: str) -> bool:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))

    names = torch._C._dispatch_get_all_op_names()
    both = [name for name in names if there(name, "CompositeImplicitAutograd") and there(name, "CPU")]
    assert "aten::silu_backward" in both
    for name in both:
        space, _, rest = name.partition("::")
        op, _, overload = rest.partition(".")
        func = getattr(getattr(getattr(torch.ops, space), op), overload or "default")
        assert CountingMode.plan(func).kind is not _COMPOSITE


def test_the_fast_path_of_the_transformer_encoder_is_kept() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()

    def infer() -> None:
        with torch.no_grad():
            layer(torch.randn(2, 5, 16))

    assert calls(measured(infer), "inference") == {"aten._transformer_encoder_layer_fwd": 1}


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_compiled_model_still_compiles_afterwards(fullgraph: bool) -> None:
    runs = 0

    def backend(graph, _):  # type: ignore[no-untyped-def]
        def run(*args):  # type: ignore[no-untyped-def]
            nonlocal runs
            runs += 1
            return graph(*args)

        return run

    torch._dynamo.reset()
    net, (x, _) = torch.compile(Net(), backend=backend, fullgraph=fullgraph), batch()
    net(x)
    assert runs == 1
    assert macs(measured(lambda: net(x))) == {"forward": FC1 + FC2}
    net(x)
    assert runs == 2
    cold = torch.compile(Net(), backend=backend, fullgraph=fullgraph)
    assert macs(measured(lambda: cold(x))) == {"forward": FC1 + FC2}
    cold(x)
    assert runs == 3


def test_higher_order_operators_run_and_their_branches_are_counted() -> None:
    from torch._higher_order_ops.while_loop import while_loop

    x, _ = batch()
    branch = measured(lambda: torch.cond(x.sum() > 1e9, lambda t: t @ t.T, lambda t: (t @ t.T) @ t, (x,)))
    assert macs(branch) == {"other": 2 * 32 * 32 * 8}
    eye = torch.eye(8)
    loop = measured(lambda: while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t @ eye), (torch.tensor(0), x)))
    assert macs(loop) == {"other": 3 * 32 * 8 * 8}


def test_jagged_and_strided_nested_tensors_do_not_crash() -> None:
    net = Net()
    rows = [torch.randn(3, 8), torch.randn(5, 8)]
    jagged = torch.nested.nested_tensor(rows, layout=torch.jagged)
    # 3 + 5 rows through both layers, no padding
    assert macs(measured(lambda: net(jagged))) == {"forward": 8 * (8 * 16 + 16 * 4)}
    strided = torch.nested.nested_tensor(rows)
    assert macs(measured(lambda: net(strided))) == {"forward": 8 * (8 * 16 + 16 * 4)}


def test_a_custom_op_without_a_rule_is_missing_and_with_one_is_counted() -> None:
    @torch.library.custom_op("bitwatt_test::product", mutates_args=())
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b

    x, _ = batch()
    run = measured(lambda: product(x, torch.ones(8, 3)))
    assert bitwatt.totals(run).missing == {"bitwatt_test.product": 1}
    with pytest.raises(bitwatt.BitwattError, match=r"bitwatt_test\.product"):
        measured(lambda: product(x, torch.ones(8, 3)), strict=True)

    @bitwatt.rule("bitwatt_test.product", family="matmul")
    def rule(a: bitwatt.TensorSpec, b: bitwatt.TensorSpec, **_: object) -> bitwatt.Work:
        return bitwatt.matmul(a.shape[0], a.shape[1], b.shape[1], a, b)

    assert bitwatt.totals(run, "macs").total == 32 * 8 * 3  # a rule written later prices an earlier run
    assert bitwatt.totals(run).missing == {}


def test_a_rule_that_fails_is_missing_with_its_reason_and_costs_nothing_else() -> None:
    @bitwatt.rule("bitwatt_test.broken")
    def broken(**_: object) -> bitwatt.Work:
        raise ZeroDivisionError("oops")

    run = bitwatt.Run("", "", "", 0.0, bitwatt.ledger.Ledger(), bitwatt.records.Machine())
    run.ledger.add("forward", "", bitwatt.Op("bitwatt_test.broken"))
    totals = bitwatt.totals(run)
    assert totals.missing == {"bitwatt_test.broken": 1}
    assert "ZeroDivisionError" in totals.entries[0].reason


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
import torch, bitwatt
with bitwatt.measure(keep=False, meter=False) as session:
    model = torch.nn.Linear(4, 2, bias=False)
    for size in (1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7, 8):
        model(torch.ones(size, 4)).sum().backward()
assert bitwatt.totals(session.run, "macs").by("phase")["forward"] == 8 * 51
"""


def test_torch_is_watched_where_numpy_is_not_installed():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT_NUMPY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_framework_that_cannot_be_watched_is_said_in_the_run():
    code = (
        "import sys, warnings\nsys.modules['bitwatt.backends.torch.watch'] = None\nimport bitwatt\n"
        "warnings.simplefilter('ignore')\n"
        "with bitwatt.measure(keep=False, meter=False) as session:\n    import torch\n"
        "print(*session.run.notes, sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("torch cannot be watched: ModuleNotFoundError: ")
    assert "nothing was watched" not in done.stdout
