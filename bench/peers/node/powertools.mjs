// The scoreboard's driver of Powertools for AWS Lambda (TypeScript): a handler of an HTTP API
// under makeIdempotent, with DynamoDB, as the utility's documentation recommends.
//
// The key expression is the documented one for API Gateway, extended by the caller and the
// path. It selects nothing if the header is missing, so that a missing key is recognized.

import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { location, serve, settings } from './driver.mjs';

const store = new DynamoDBPersistenceLayer({ tableName: settings.table });
const config = new IdempotencyConfig({
  eventKeyJmesPath:
    'headers."idempotency-key" && [requestContext.authorizer.jwt.claims.sub, routeKey, headers."idempotency-key"]',
  payloadValidationJmesPath: 'powertools_json(body)',
  throwOnNoIdempotencyKey: true,
});

const handler = makeIdempotent(
  async (event, context) => {
    const { call } = context;
    if (call.script.mutate) {
      event.headers = {};
      event.requestContext.authorizer.jwt.claims.sub = 'nobody';
    }
    await call.run();
    const binary = call.script.binary === true;
    return {
      statusCode: call.script.status,
      headers: { Location: location },
      body: call.body.toString(binary ? 'base64' : 'utf8'),
      isBase64Encoded: binary,
    };
  },
  { persistenceStore: store, config },
);

// Returns the request as API Gateway passes it to a function behind a JWT authorizer.
const event = ({ path, caller, key, body }) => ({
  version: '2.0',
  routeKey: `POST ${path}`,
  rawPath: path,
  rawQueryString: '',
  headers: { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) },
  requestContext: {
    authorizer: { jwt: { claims: { iss: 'https://issuer.example.com', sub: caller } } },
    http: { method: 'POST', path },
  },
  body,
  isBase64Encoded: false,
});

// Powertools prints warnings to standard output, which the protocol needs, so redirect them.
console.warn = console.log = console.info = console.debug = console.error;

const client = new DynamoDBClient();

await serve(
  async (call) => {
    const response = await handler(event(call.request), { getRemainingTimeInMillis: call.left, call });
    return {
      status: response.statusCode,
      location: response.headers.Location,
      body: Buffer.from(response.body, response.isBase64Encoded ? 'base64' : 'utf8'),
    };
  },
  (account) =>
    client.send(
      new UpdateItemCommand({
        TableName: settings.accounts,
        Key: { id: { S: account } },
        UpdateExpression: 'ADD balance :one',
        ExpressionAttributeValues: { ':one': { N: '1' } },
      }),
    ),
);
