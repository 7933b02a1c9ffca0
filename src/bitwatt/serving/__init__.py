"""Requests that a program serves, beside what they cost: one file for each way in.

    served = bitwatt.meter_requests("classifier")

    @served                      # a function, also an asynchronous or a streaming one
    def predict(text): ...

    app = served.asgi(app)       # FastAPI, Starlette, any ASGI application
    app = served.wsgi(app)       # Flask, Django, any WSGI application
    with served.request(): ...   # anything else

The run begins with the first request of a process and ends with `served.close()` or the process.
"""

from bitwatt.serving.meter import RequestMeter, meter_requests

__all__ = ["RequestMeter", "meter_requests"]
