"""Every sensor, as it stands on this machine: absent in words, or read with manners."""

from __future__ import annotations

import pytest

from bitwatt.sensors import SENSORS
from bitwatt.testing import check_sensor


@pytest.mark.parametrize("name", list(SENSORS))
def test_every_sensor_keeps_the_contract(name: str) -> None:
    sensor = SENSORS[name]()
    assert sensor.name == name
    assert getattr(sensor, "source", "")
    check_sensor(sensor)


def test_looking_for_sensors_imports_no_library_of_a_vendor() -> None:
    import subprocess
    import sys

    code = (
        "import sys, bitwatt.sensors; list(bitwatt.sensors.SENSORS); "
        "print(sorted({'pynvml', 'amdsmi', 'psutil', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
