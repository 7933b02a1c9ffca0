"""A model in this process as the target of a load."""

from __future__ import annotations

import time
from typing import Any

from bitwatt.deploy.given import rows as forms
from bitwatt.deploy.load.loops import Call
from bitwatt.deploy.measuring import batching
from bitwatt.deploy.records import Loaded
from bitwatt.errors import BitwattError

#: Different requests, asked in turn: one row again and again would be answered out of caches.
_DIFFERENT = 256
_WARM_CALLS, _WARM_S = 20, 0.5


class Local:
    remote = False

    def __init__(self, loaded: Loaded, inputs: Any, rows: int = 1, *, limit_s: float = 30.0) -> None:
        if not forms.count(inputs):
            raise BitwattError("there are no rows to ask for")
        self.limit_s, self.predict = limit_s, loaded.predict
        self._requests = batching.batches(inputs, rows, _DIFFERENT)

    def caller(self) -> Call:
        predict, requests, many = self.predict, self._requests, len(self._requests)

        def call(number: int) -> str:
            try:
                predict(requests[number % many])
            except Exception as error:  # what a model raises under load is a finding
                return f"{type(error).__name__}: {error}"[:300]
            return ""

        return call

    def warm(self) -> str:
        """Asks until it is warm. What the first call raised, if it did."""
        call, until = self.caller(), time.monotonic() + _WARM_S
        for number in range(_WARM_CALLS):
            error = call(number)
            if error or time.monotonic() > until:
                return error
        return ""
