"""The scoreboard's driver of idemkit: an ASGI application under IdempotencyMiddleware, with
DynamoBackend and a scope, as its documentation recommends for production.

Behind an ASGI adapter for Lambda the middleware sees the same requests.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from idemkit import DynamoBackend, HttpConfig, IdempotencyMiddleware

import driver

loop = asyncio.new_event_loop()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    call: driver.Call = scope["call"]
    await receive()
    if call.script.get("mutate"):
        scope["headers"].clear()
    await asyncio.to_thread(call.run)
    content_type = b"application/octet-stream" if call.script.get("binary") else b"text/plain"
    headers = [(b"content-type", content_type), (b"location", driver.LOCATION.encode())]
    await send({"type": "http.response.start", "status": call.script["status"], "headers": headers})
    await send({"type": "http.response.body", "body": call.body, "more_body": False})


async def build() -> IdempotencyMiddleware:
    backend = DynamoBackend(table=driver.Settings.table, create_table=False)
    return IdempotencyMiddleware(
        application,
        backend=backend,
        config=HttpConfig(
            scope=lambda request: request.headers.get("x-user-id"),
            # Above the handler's p99: no handler runs for longer than the function's timeout.
            lease_ttl_seconds=driver.Settings.timeout,
            wait_timeout_seconds=0 if driver.Settings.refuse else None,
        ),
    )


async def ask(middleware: IdempotencyMiddleware, call: driver.Call) -> dict[str, Any]:
    request = call.request
    headers = [(b"content-type", b"application/json"), (b"x-user-id", request["caller"].encode())]
    if key := request.get("key"):
        headers.append((b"idempotency-key", key.encode()))
    answer: dict[str, Any] = {"location": "", "body": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request["body"].encode(), "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer["status"] = message["status"]
            answer["location"] = dict(message["headers"]).get(b"location", b"").decode()
        else:
            answer["body"] += message.get("body", b"")

    scope = {
        "type": "http",
        "method": "POST",
        "path": request["path"],
        "query_string": b"",
        "headers": headers,
        "call": call,
    }
    await middleware(scope, receive, send)
    return answer


def main() -> None:
    threading.Thread(target=loop.run_forever, daemon=True).start()
    middleware = asyncio.run_coroutine_threadsafe(build(), loop).result()
    driver.serve(lambda call: asyncio.run_coroutine_threadsafe(ask(middleware, call), loop).result())


main()
