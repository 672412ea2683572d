"""The scoreboard's driver of Powertools for AWS Lambda (Python): a handler of an HTTP API
under @idempotent, with DynamoDB, as the utility's documentation recommends.

The key expression is the documented one for API Gateway, extended by the caller and the path.
It selects nothing if the header is missing, so that a missing key is recognized.
"""

from __future__ import annotations

import base64
from typing import Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent,
)

import driver

store = DynamoDBPersistenceLayer(table_name=driver.Settings.table)
config = IdempotencyConfig(
    event_key_jmespath='headers."idempotency-key" && '
    '[requestContext.authorizer.jwt.claims.sub, routeKey, headers."idempotency-key"]',
    payload_validation_jmespath="powertools_json(body)",
    raise_on_no_idempotency_key=True,
)


class Context:
    """The part of Lambda's context that Powertools reads, and the call for the handler."""

    function_name = "payments"

    def __init__(self, call: driver.Call) -> None:
        self.call = call

    def get_remaining_time_in_millis(self) -> int:
        return self.call.left_ms()


@idempotent(config=config, persistence_store=store)
def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    call = context.call
    if call.script.get("mutate"):
        event["headers"].clear()
        event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"] = "nobody"
    call.run()
    binary = bool(call.script.get("binary"))
    return {
        "statusCode": call.script["status"],
        "headers": {"Location": driver.LOCATION},
        "body": base64.b64encode(call.body).decode() if binary else call.body.decode(),
        "isBase64Encoded": binary,
    }


def guarded(call: driver.Call) -> dict[str, Any]:
    response = handler(event(call.request), Context(call))
    body = response["body"]
    return {
        "status": response["statusCode"],
        "location": response["headers"]["Location"],
        "body": base64.b64decode(body) if response["isBase64Encoded"] else body.encode(),
    }


def event(request: dict[str, str]) -> dict[str, Any]:
    """Returns the request as API Gateway passes it to a function behind a JWT authorizer."""
    headers = {"content-type": "application/json"}
    if key := request.get("key"):
        headers["idempotency-key"] = key
    claims = {"iss": "https://issuer.example.com", "sub": request["caller"]}
    return {
        "version": "2.0",
        "routeKey": f"POST {request['path']}",
        "rawPath": request["path"],
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "authorizer": {"jwt": {"claims": claims}},
            "http": {"method": "POST", "path": request["path"]},
        },
        "body": request["body"],
        "isBase64Encoded": False,
    }


driver.serve(guarded)
