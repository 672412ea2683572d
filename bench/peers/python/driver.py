"""The scoreboard's protocol, for the drivers in Python: see bench/peers/driver/protocol.go.

A peer's module calls serve() with a function that guards one call and returns what the
caller receives.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
import warnings
from typing import Any, Callable

LOCATION = "/payments/1"


class Scripted(Exception):
    """The error of a handler whose script says fail."""


class Settings:
    """The settings that the scoreboard passes to a driver in environment variables."""

    table = os.environ["PEER_TABLE"]
    accounts = os.environ["PEER_ACCOUNTS"]
    timeout = int(os.environ["PEER_TIMEOUT_MS"]) / 1000  # seconds
    refuse = os.environ.get("PEER_REFUSE") == "1"  # a duplicate is refused at once
    clock_ahead = int(os.environ["PEER_CLOCK_AHEAD_MS"]) / 1000  # seconds


class Call:
    """One call: the request, the script of its handler, and the invocation's deadline."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.id: int = message["id"]
        self.request: dict[str, str] = message["request"]
        self.script: dict[str, Any] = message["script"]
        self.body: bytes = base64.b64decode(self.script.get("body", ""))
        self._deadline = time.monotonic() + message.get("left_ms", 0) / 1000
        self._resume = threading.Event()

    def left_ms(self) -> int:
        """Returns the milliseconds until the invocation's deadline, like Lambda's context."""
        return max(int((self._deadline - time.monotonic()) * 1000), 0)

    def run(self) -> None:
        """Follows the script, like Call.Run in bench/peers/driver."""
        if account := self.script.get("add"):
            _add(account)
        _write({"id": self.id, "ran": True})
        if self.script.get("hold"):
            self._resume.wait()
        if self.script.get("fail"):
            raise Scripted("the payment service is down")

    def resume(self) -> None:
        self._resume.set()


_out = threading.Lock()


def _write(message: dict[str, Any]) -> None:
    with _out:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def _add(account: str) -> None:
    import boto3

    boto3.client("dynamodb").update_item(
        TableName=Settings.accounts,
        Key={"id": {"S": account}},
        UpdateExpression="ADD balance :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )


def serve(guarded: Callable[[Call], dict[str, Any]]) -> None:
    """Serves the calls on standard input, each in its own thread, until the input ends.

    guarded returns the answer's status, location and body (bytes). It raises the exceptions
    that leave the function.
    """
    warnings.simplefilter("ignore")
    if Settings.clock_ahead:
        _set_clock(Settings.clock_ahead)
    calls: dict[int, Call] = {}
    _write({"id": 0, "ready": True, "clock_ms": int(time.time() * 1000)})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("resume"):
            calls[message["id"]].resume()
            continue
        call = calls[message["id"]] = Call(message)
        threading.Thread(target=_answer, args=(guarded, call), daemon=True).start()


def _set_clock(ahead: float) -> None:
    """Sets the process's clock ahead by the given number of seconds."""
    import datetime

    import time_machine

    clock = time_machine.travel(datetime.timedelta(0), tick=True).start()
    # Also make up for the time that start() has taken, by which the clock is behind.
    clock.shift(ahead + time_machine.escape_hatch.time.time() - time.time())


def _since(began: float) -> int:
    return int((time.perf_counter() - began) * 1_000_000)


def _answer(guarded: Callable[[Call], dict[str, Any]], call: Call) -> None:
    began = time.perf_counter()
    try:
        answer = guarded(call)
        took = _since(began)
        answer["body"] = base64.b64encode(answer["body"]).decode()
    except Scripted:
        took = _since(began)
        answer = {"error": "the handler's error"}
    except Exception as error:  # whatever leaves the function becomes API Gateway's 500
        took = _since(began)
        answer = {"error": type(error).__name__}
    _write({"id": call.id, "answer": answer, "took_us": took})
