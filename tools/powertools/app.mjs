// A function that is guarded by Powertools for AWS Lambda (TypeScript), for package powertools'
// tests. Input, output and environment are those of app.py.
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { createInterface } from 'node:readline';

const { TABLE, SORT_KEY, EXPRESSION, VALIDATION } = process.env;
const handler = makeIdempotent(
  async (event, context) => {
    if (context.dies) process.exit(1);
    context.ran = true;
    return {
      statusCode: 201,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ from: 'TypeScript', order: JSON.parse(event.body) }),
    };
  },
  {
    persistenceStore: new DynamoDBPersistenceLayer({
      tableName: TABLE,
      ...(SORT_KEY && { keyAttr: 'PK', sortKeyAttr: SORT_KEY }),
    }),
    config: new IdempotencyConfig({
      eventKeyJmesPath: EXPRESSION,
      payloadValidationJmesPath: VALIDATION || undefined,
    }),
  }
);

for await (const text of createInterface({ input: process.stdin })) {
  const { event, left, dies } = JSON.parse(text);
  const context = { getRemainingTimeInMillis: () => left, dies, ran: false };
  const out = {};
  try {
    out.answer = await handler(event, context);
  } catch (e) {
    out.error = e.name;
  }
  console.log(JSON.stringify({ ...out, ran: context.ran }));
}
