"""For people who add a rule, a cost model or a sensor: the checks that bitwatt's own pass, and faulty machines."""

from bitwatt.testing.nvml import FakeGPU, FakeNVML
from bitwatt.testing.powercap import FakePowercap, fake_powercap
from bitwatt.testing.rules import FAMILIES, check_cost_model, check_rule, check_work
from bitwatt.testing.sensors import FakeClock, FakeSensor, check_sensor

__all__ = [
    "FAMILIES",
    "FakeClock",
    "FakeGPU",
    "FakeNVML",
    "FakePowercap",
    "FakeSensor",
    "check_cost_model",
    "check_rule",
    "check_sensor",
    "check_work",
    "fake_powercap",
]
