"""Writes the ids that Powertools for AWS Lambda (Python) makes for the cases of cases.py on standard input.

The output is a JSON list of ids. An id is null if the library stores no record for the data.
"""

import json
import sys
import warnings

warnings.simplefilter("ignore")

from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer, IdempotencyConfig, idempotent


class Recorder(BasePersistenceLayer):
    """Remembers the id of the record that the library would store."""

    id = None

    def _put_record(self, data_record):
        self.id = data_record.idempotency_key

    def _update_record(self, data_record):
        pass

    def _delete_record(self, data_record):
        pass

    def _get_record(self, idempotency_key):
        raise NotImplementedError


class Context:
    def get_remaining_time_in_millis(self):
        return 1000


def id_of(case):
    event = case["event"] if "event" in case else json.loads(case["data"])
    recorder = Recorder()
    config = IdempotencyConfig(event_key_jmespath=case.get("expression", ""))

    @idempotent(persistence_store=recorder, config=config, key_prefix="payments.app.handler")
    def handler(event, context):
        return None

    handler(event, Context())
    return recorder.id


json.dump([id_of(case) for case in json.load(sys.stdin)], sys.stdout, indent=1)
print()
