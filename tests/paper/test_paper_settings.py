"""The search for the paper's settings: closed forms are what bitwatt counts, and a setting that is there is found."""

from __future__ import annotations

import pytest
from examples.paper import printed, settings
from examples.paper.counting import estimated
from examples.paper.models import MLP, ResNet, Setting, Transformer, program

import bitwatt


@pytest.mark.parametrize(
    "setting",
    [
        MLP(3, (16,)), MLP(2, (32, 8)), ResNet(2, 16), ResNet(1, 40, "imagenet"), ResNet(2, 33),
        Transformer(2, 5, 50, 24, 16, 1), Transformer(1, 9, 40, 64, 32, 3),
    ],
    ids=str,
)  # fmt: skip
def test_closed_forms_are_what_is_counted(setting: Setting) -> None:
    run = estimated(lambda: program(setting).step())
    macs = bitwatt.totals(run, "macs").by("phase")
    assert (2 * macs["forward"], 2 * macs["backward"]) == setting.matrix_flops()


def test_the_published_sizes_come_out() -> None:
    # He et al. 2015 print 1.8 GFLOPs, which are multiply-accumulates, for ResNet-18 at 224 pixels; with 1,000 classes
    # instead of 10 the last layer has 512·990 more.
    assert ResNet(1, 224, "imagenet").matrix_flops()[0] / 2 == pytest.approx(1.8137e9, rel=1e-3)
    # by hand: 64·(784·512 + 512·512 + 512·10) multiply-accumulates
    assert MLP(64).matrix_flops()[0] == 2 * 64 * (784 * 512 + 512 * 512 + 5120)


@pytest.mark.parametrize("name", ["mlp", "resnet", "transformer"])
def test_the_search_finds_a_setting_that_is_in_the_grid(name: str) -> None:
    hidden = list(settings.grid(name))[17]
    forward, backward = hidden.matrix_flops()
    found = settings.search(name, (forward + backward) / 1e9)
    assert found[0].off == pytest.approx(0, abs=1e-12)
    assert (hidden, "forward + exact backward") in [
        (one.setting, one.convention) for one in found if abs(one.off) < 1e-9
    ]
    assert [abs(one.off) for one in found] == sorted(abs(one.off) for one in found)


def test_the_chosen_settings_are_in_the_grid_and_the_transformer_is_the_nearest() -> None:
    for name, setting in settings.CHOSEN.items():
        assert setting in set(settings.grid(name))
    assert settings.phase_search()[0][0] == settings.CHOSEN["transformer"]
    low, high = printed.interval(printed.TABLE_2["transformer"])
    assert settings.search("transformer", (low + high) / 2)[0].setting == settings.CHOSEN["transformer"]


def test_what_rounds_to_both_printed_numbers() -> None:
    # 8.25 / 32 = 0.2578 and 8.35 / 32 = 0.2609 lie within 0.255 and 0.265
    assert printed.interval(printed.TABLE_2["mlp"]) == pytest.approx((8.25 / 32, 8.35 / 32))


def test_equal_amounts_are_shown_once() -> None:
    tries = settings.search("mlp", 0.26)
    shown = settings.distinct(tries, 5)
    assert len({round(one.gflops, 9) for one in shown}) == len(shown) == 5
