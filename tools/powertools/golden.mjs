// Writes the ids that Powertools for AWS Lambda (TypeScript) makes for the cases of cases.py on
// standard input. The output is a JSON list of ids. An id is null if the library stores no record
// for the data.
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer } from '@aws-lambda-powertools/idempotency/persistence';
import { readFileSync } from 'node:fs';

console.warn = () => {};

class Recorder extends BasePersistenceLayer {
  id = null;

  async _putRecord(record) {
    this.id = record.idempotencyKey;
  }

  async _updateRecord() {}

  async _deleteRecord() {}

  async _getRecord() {
    throw new Error('not reached');
  }
}

const context = { getRemainingTimeInMillis: () => 1000 };

async function idOf({ data, event = JSON.parse(data), expression }) {
  const recorder = new Recorder();
  const handler = makeIdempotent(async () => 'done', {
    persistenceStore: recorder,
    config: new IdempotencyConfig({ eventKeyJmesPath: expression }),
    keyPrefix: 'payments',
  });
  await handler(event, context);
  return recorder.id;
}

const ids = [];
for (const one of JSON.parse(readFileSync(0, 'utf8'))) {
  ids.push(await idOf(one));
}
console.log(JSON.stringify(ids, null, 1));
