"""A function that is guarded by Powertools for AWS Lambda (Python), for package powertools' tests.

It reads one JSON line for each invocation: {"event": ..., "left": milliseconds, "dies": false}. It
writes one for each answer: {"answer": ..., "ran": true, "error": "the type of the exception"}. An
invocation that dies ends the process in the middle of the handler.

The environment: TABLE; SORT_KEY, the name of the table's sort key, or empty; EXPRESSION, the JMESPath
expression; VALIDATION, that of the payload to validate, or empty.
"""

import json
import os
import sys

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent

sort_key = os.environ["SORT_KEY"]
names = {"key_attr": "PK", "sort_key_attr": sort_key} if sort_key else {}
store = DynamoDBPersistenceLayer(table_name=os.environ["TABLE"], **names)
config = IdempotencyConfig(
    event_key_jmespath=os.environ["EXPRESSION"],
    payload_validation_jmespath=os.environ["VALIDATION"],
)


class Context:
    def __init__(self, line):
        self.left = line["left"]
        self.dies = line["dies"]
        self.ran = False

    def get_remaining_time_in_millis(self):
        return self.left


@idempotent(persistence_store=store, config=config)
def handler(event, context):
    if context.dies:
        os._exit(1)
    context.ran = True
    order = json.loads(event["body"])
    return {
        "statusCode": 201,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps({"from": "Python", "order": order}),
    }


if __name__ == "__main__":
    for text in sys.stdin:
        line = json.loads(text)
        context = Context(line)
        out = {}
        try:
            out["answer"] = handler(line["event"], context)
        except Exception as e:
            out["error"] = type(e).__name__
        print(json.dumps({**out, "ran": context.ran}), flush=True)
