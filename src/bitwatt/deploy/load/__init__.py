"""Load: callers that wait for answers, requests that come when they come, and the highest rate that still does.

`put` loads an artefact in a fresh process and asks it from threads there; `http` asks an endpoint. Latency counts from
when a request was meant to be sent, so a stall is felt by all that should have come meanwhile.
"""

from bitwatt.deploy.load.endpoint import http
from bitwatt.deploy.load.putting import put
from bitwatt.deploy.load.slo import parse as parse_slo

__all__ = ["http", "parse_slo", "put"]
