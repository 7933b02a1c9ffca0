"""The application: which address is which page, and which of the JSON beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from bitwatt.dashboard.asking import LINES, SORT, Asked, whole, words
from bitwatt.dashboard.catalog import Catalog
from bitwatt.dashboard.compare import compare_page, compared
from bitwatt.dashboard.deployments import deployment_page, deployments_page
from bitwatt.dashboard.frame import FILES, alert, framed
from bitwatt.dashboard.guard import LOGIN
from bitwatt.dashboard.live import Live, live_page
from bitwatt.dashboard.login import logged_in, login_page
from bitwatt.dashboard.ranks import job_of, job_page, jobs_page
from bitwatt.dashboard.run import run_page
from bitwatt.dashboard.runs import runs_page
from bitwatt.dashboard.stream import Stream
from bitwatt.dashboard.trends import Drawn, trends_page
from bitwatt.deploy.telling.kept import findings_of
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.reports import report
from bitwatt.reports.html.layout import Parts
from bitwatt.reports.ranks import render
from bitwatt.store.cells import document

Many = Annotated[tuple[str, ...], Query()]
#: Runs in one answer.
_MOST = 1_000


def made(catalog: Catalog, *, token: str | None) -> FastAPI:
    """Functions that are not `async` run in threads: reading a store and drawing take their time."""
    live = Live(catalog)
    stream = Stream(lambda: json.dumps(live.look()), lambda: catalog.pause)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        first = asyncio.create_task(asyncio.to_thread(_first_look, catalog))
        yield
        first.cancel()
        await stream.close()
        catalog.close()

    app = FastAPI(title="bitwatt", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=4)
    app.state.stream = stream
    _pages(app, catalog, live)
    _programs(app, catalog, stream)
    _around(app, token)
    return app


def _first_look(catalog: Catalog) -> None:
    """Of a large store the index takes seconds to make; who comes meanwhile waits for it, and is told what is wrong."""
    with suppress(BitwattError, OSError):
        catalog.look()


def _pages(app: FastAPI, catalog: Catalog, live: Live) -> None:
    page: dict[str, Any] = {"response_class": HTMLResponse, "include_in_schema": False}

    @app.get("/", **page)
    def runs(q: str = "", sort: str = SORT, column: Many = (), start: str = "") -> HTMLResponse:
        status, html = runs_page(catalog, Asked(q, sort or SORT, column, whole(start, 0, 10**9)))
        return HTMLResponse(html, status)

    @app.get("/runs/{id:path}", **page)
    def one(id: str) -> str:
        return run_page(catalog, id)

    @app.get("/compare", **page)
    def compare(run: Many = (), repeat: str = "", metric: str = "", order: str = "") -> HTMLResponse:
        status, html = compare_page(catalog, run, repeat=bool(repeat), metric=metric, oldest_first=bool(order))
        return HTMLResponse(html, status)

    @app.get("/trends", **page)
    def trends(q: str = "", metric: str = "", better: str = "", each: str = "", x: Many = ()) -> HTMLResponse:
        status, html = trends_page(catalog, Drawn(q, metric, better, each, x))
        return HTMLResponse(html, status)

    @app.get("/ranks", **page)
    def jobs() -> str:
        return jobs_page(catalog)

    @app.get("/ranks/{job:path}", **page)
    def job(job: str, name: str = "") -> str:
        return job_page(catalog, job, name)

    @app.get("/deployments", **page)
    def deployments() -> str:
        return deployments_page(catalog)

    @app.get("/deployments/{id:path}", **page)
    def deployment(id: str) -> str:
        return deployment_page(catalog, id)

    @app.get("/live", **page)
    def under_way() -> str:
        return live_page(live)


def _programs(app: FastAPI, catalog: Catalog, stream: Stream) -> None:
    @app.get("/api/runs")
    def runs(
        q: str = "",
        where: Many = (),
        sort: str = SORT,
        limit: int = LINES,
        offset: int = 0,
    ) -> dict[str, Any]:
        """Runs that fulfil every filter: `q` as in the page's box, `where` one filter each."""
        index, wanted = catalog.look(), [*words(q), *where]
        found = index.select(wanted, sort, min(max(limit, 0), _MOST), max(offset, 0))
        return {"total": index.count(wanted), "runs": [document(header) for header in found]}

    @app.get("/api/runs/{id:path}")
    def one(id: str) -> Response:
        """The report of one run, as `bitwatt report --format json` writes it."""
        return _json(report(catalog.run(id), format="json", settings=catalog.settings))

    @app.get("/api/compare")
    def compare(run: Many = (), repeat: str = "", metric: str = "") -> Response:
        """Runs against the first of them, as `bitwatt compare --format json` writes it."""
        return _json(json.dumps(compared(catalog, run, repeat=bool(repeat), metric=metric).json()))

    @app.get("/api/ranks/{job:path}")
    def ranks(job: str, name: str = "") -> Response:
        """All ranks of a job as one, as `bitwatt report --ranks --format json` writes it."""
        return _json(render(job_of(catalog, job, name), "json"))

    @app.get("/api/deployments/{id:path}")
    def deployment(id: str) -> dict[str, Any]:
        """What `bitwatt deploy` writes to hardware_tradeoffs_summary.json."""
        return findings_of(catalog.run(id)).summary()

    @app.get("/api/live", include_in_schema=False)
    async def live() -> Response:
        if stream.is_full:
            return JSONResponse({"error": "too many listen already"}, 503)
        told = {"x-accel-buffering": "no"}  # a proxy is to pass each event on at once
        return StreamingResponse(stream.events(), media_type="text/event-stream", headers=told)


def _around(app: FastAPI, token: str | None) -> None:
    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str, request: Request) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        file = FILES[name]
        told = {"etag": f'"{name}"', "cache-control": "public, max-age=31536000, immutable"}
        if request.headers.get("if-none-match") == told["etag"]:
            return Response(status_code=304, headers=told)
        return Response(file.content, media_type=file.kind, headers=told)

    if token is not None:

        @app.get(LOGIN, response_class=HTMLResponse, include_in_schema=False)
        def login() -> str:
            return login_page()

        @app.post(LOGIN, include_in_schema=False)
        async def enter(request: Request) -> Response:
            return await logged_in(request, token)

    @app.exception_handler(BitwattError)
    def wrong(request: Request, error: BitwattError) -> Response:
        return _trouble(
            request, 404 if isinstance(error, UnknownNameError) and request.path_params else 400, str(error)
        )

    @app.exception_handler(OSError)
    def unreadable(request: Request, error: OSError) -> Response:
        return _trouble(request, 503, f"the store cannot be read: {error.strerror or error}")

    @app.exception_handler(HTTPException)
    def absent(request: Request, error: HTTPException) -> Response:
        return _trouble(
            request, error.status_code, "There is no such page." if error.status_code == 404 else error.detail
        )


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


def _trouble(request: Request, status: int, why: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": why}, status)
    title = {404: "Not found", 503: "Not readable"}.get(status, "That did not work")
    return HTMLResponse(framed(Parts(title, f"<h1>{title}</h1>{alert(why)}", []), at=""), status)
