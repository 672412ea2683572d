// The scoreboard's protocol, for the driver in JavaScript: see bench/peers/driver/protocol.go.

import { createInterface } from 'node:readline';

export const location = '/payments/1';

// The settings that the scoreboard passes to a driver in environment variables.
export const settings = {
  table: process.env.PEER_TABLE,
  accounts: process.env.PEER_ACCOUNTS,
  clockAhead: Number(process.env.PEER_CLOCK_AHEAD_MS),
};

// The error of a handler whose script says fail.
class Scripted extends Error {}

const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

// Sets the process's clock ahead, but not the monotonic clock, which the deadlines of invocations follow.
const setClock = (ahead) => {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args) {
      super(...(args.length ? args : [RealDate.now() + ahead]));
    }
    static now() {
      return RealDate.now() + ahead;
    }
  };
};

// serve serves the calls on standard input with guarded, until the input ends. guarded gets
// the call, and returns the status, location and body (a Buffer) that the caller receives. It
// throws the errors that leave the function. add makes the handler's own write.
export const serve = async (guarded, add) => {
  if (settings.clockAhead) setClock(settings.clockAhead);
  const calls = new Map();
  write({ id: 0, ready: true, clock_ms: Date.now() });
  for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    if (message.resume) {
      calls.get(message.id).resume();
      continue;
    }
    const { id, request, script = {} } = message;
    const end = performance.now() + (message.left_ms ?? 0);
    let resume;
    const resumed = new Promise((resolve) => {
      resume = resolve;
    });
    const call = {
      request,
      script,
      resume,
      body: Buffer.from(script.body ?? '', 'base64'),
      // Returns the milliseconds until the invocation's deadline, like Lambda's context.
      left: () => Math.max(Math.floor(end - performance.now()), 0),
      // Follows the script, like Call.Run in bench/peers/driver.
      run: async () => {
        if (script.add) await add(script.add);
        write({ id, ran: true });
        if (script.hold) await resumed;
        if (script.fail) throw new Scripted('the payment service is down');
      },
    };
    calls.set(id, call);
    const began = performance.now();
    const took = () => Math.round((performance.now() - began) * 1000);
    guarded(call).then(
      (answer) => write({ id, took_us: took(), answer: { ...answer, body: answer.body.toString('base64') } }),
      (error) =>
        write({ id, took_us: took(), answer: { error: error instanceof Scripted ? "the handler's error" : error.name } }),
    );
  }
};
