"""Every rank of a node reads the same counters: a device counts once, the processes add up."""

from dataclasses import replace

import pytest

from bitwatt.ranks.energy import Reader, joined, waited
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy


def metered(seconds: float, watts: dict[str, float], **fields) -> Metered:
    """Constant watts; half of the time in forward."""
    energy = tuple(
        Energy(Device(name, name.partition(":")[0]), power * seconds, "measured", "fake", seconds, power, power)
        for name, power in watts.items()
    )
    forward = PhaseEnergy({name: power * seconds / 2 for name, power in watts.items()}, "apportioned", seconds / 2)
    rest = {name: power * seconds / 2 for name, power in watts.items()}
    return Metered(
        seconds, energy, {"forward": forward}, rest, {"cpu_seconds": seconds, "host.load_mean": 3.0}, **fields
    )


def energies(found: Metered) -> dict[str, float | None]:
    return {part.device.id: part.energy_j for part in found.energy}


def test_eight_ranks_of_a_node_draw_what_the_node_draws():
    node = {"cpu:0": 100.0, "gpu:A": 300.0}
    found = joined([Reader(rank, "one", 0.0, metered(10.0, node)) for rank in range(8)])
    assert energies(found) == pytest.approx({"cpu:0": 1000.0, "gpu:A": 3000.0})
    assert found.usage["cpu_seconds"] == pytest.approx(80)  # of processes: added up
    assert found.usage["host.load_mean"] == 3.0  # of the machine: once
    assert found.phases["forward"].energy_j == pytest.approx({"cpu:0": 500.0, "gpu:A": 1500.0})
    assert found.remainder_j == pytest.approx({"cpu:0": 500.0, "gpu:A": 1500.0})


def test_ranks_with_a_gpu_each_have_all_of_them():
    readers = [Reader(rank, "one", 0.0, metered(10.0, {"cpu:0": 100.0, f"gpu:{rank}": 300.0})) for rank in range(4)]
    assert sum(energies(joined(readers)).values()) == pytest.approx(1000 + 4 * 3000)


def test_nodes_add_up_also_where_their_devices_are_called_alike():
    readers = [Reader(rank, f"node{rank // 2}", 0.0, metered(10.0, {"cpu:0": 100.0})) for rank in range(4)]
    assert energies(joined(readers)) == pytest.approx({"node0/cpu:0": 1000.0, "node1/cpu:0": 1000.0})


def test_windows_are_united():
    # 0 to 10 s and 4 to 16 s: the longer one has 12 s at 100 W, the other 4 s of its own.
    readers = [
        Reader(0, "one", 0.0, metered(10.0, {"cpu:0": 90.0})),
        Reader(1, "one", 4.0, metered(12.0, {"cpu:0": 100.0})),
    ]
    (part,) = joined(readers).energy
    assert part.energy_j == pytest.approx(1200 + 4 * 90)
    assert part.seconds == pytest.approx(16)
    assert joined(readers).seconds == pytest.approx(16)
    assert "rank 0" in part.note


def test_a_rank_that_could_not_read_a_device_takes_nothing_away():
    blind = metered(20.0, {"cpu:0": 1.0})
    blind = replace(blind, energy=(replace(blind.energy[0], energy_j=None, mean_w=None),), phases={}, remainder_j={})
    found = joined([Reader(0, "one", 0.0, blind), Reader(1, "one", 0.0, metered(10.0, {"cpu:0": 100.0}))])
    assert energies(found) == pytest.approx({"cpu:0": 1000.0})
    alone = joined([Reader(0, "one", 0.0, blind)])
    assert energies(alone) == {"cpu:0": None}
    assert alone.measured_j is None


def test_modelled_energy_is_of_each_ranks_own_processes():
    one = metered(10.0, {"cpu": 20.0})
    modelled = replace(one, energy=tuple(replace(part, how="modelled") for part in one.energy))
    (part,) = joined([Reader(rank, "one", 0.0, modelled) for rank in range(4)]).energy
    assert (part.energy_j, part.mean_w, part.how) == (pytest.approx(800), pytest.approx(80), "modelled")


def test_waiting_costs_the_share_of_power_of_those_who_wait():
    # two ranks on a node of 400 W: one waited 5 s, at 200 W
    node = {"cpu:0": 100.0, "gpu:A": 300.0}
    readers = [Reader(rank, "one", 0.0, metered(10.0, node), waited=5.0 * rank) for rank in range(2)]
    assert (waited(readers).seconds, waited(readers).energy_j) == (5.0, pytest.approx(1000))
    assert waited([Reader(0, "one", 0.0, metered(10.0, {}), waited=5.0)]).energy_j is None
