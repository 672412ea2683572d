package lambdaidem

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// BatchOptions configure a guarded handler of messages or stream records, such as one that
// [Guard.SQS] returns. The zero value of a field means its default.
type BatchOptions[M any] struct {
	// Key returns the idempotency key of a message, or "" if the message has no key. Default: the
	// key that the sender gave as [MessageKey], else the message's id. The event source gives each
	// message an id, which is the same in each delivery. The guard calls Key for every message of a
	// batch before the first message begins, so Key should be fast. Options.ValidateKey checks the
	// key.
	//
	// A message that is redriven from a dead-letter queue, or sent again, has a new id. If the
	// first delivery may have had effects, the sender must give a key, or Key must derive one.
	// Otherwise the handler runs a second time, even under policy [Hold]. Under Hold, the guard
	// logs a warning, once, if it uses an id as the key.
	Key func(context.Context, M) (string, error)
	// Repeated reports whether a message probably repeats an earlier one, like Options.Repeated for
	// HTTP. If Repeated returns true, the guard first reads the message's record. If the message
	// has been handled, the read saves a more expensive write, the guard's claim of the lease.
	// Otherwise the read is an additional cost. [Redelivered] is such a function for SQS. Default:
	// nil; the guard then makes no such read.
	Repeated func(M) bool
	// Operation names what the handler does. Operation and key together identify a record.
	// Default: the source's ARN; for other defaults, see [Guard.EventBridge], [Guard.Kafka],
	// [Guard.ActiveMQ], [Guard.RabbitMQ] and [Guard.DocumentDB].
	//
	// The consumers of a queue and of its dead-letter queue share their records if they
	// have the same Operation and their guards have the same Options.Namespace. Two
	// handlers of one source must have different Operations, or the second handler skips
	// the messages that the first has handled.
	Operation string
	// FingerprintAttributes names parts of messages that belong to the payload besides the body,
	// such as a tenant: attributes of SQS and SNS, headers of Kafka and RabbitMQ, or properties of
	// ActiveMQ. Two messages with the same key must have the same attributes of this list, with
	// equal types and values. Otherwise the later message fails with [ErrPayloadMismatch]. Case
	// does not matter in the names. Default: none, because tracers add attributes that differ each
	// time a sender sends a message again.
	//
	// After a change of the list, a message whose record is older than the change fails with
	// [ErrPayloadMismatch].
	FingerprintAttributes []string
	// Wait is how long a message waits while another attempt for its key is running. The wait
	// always ends before the invocation's deadline. Default: for the messages of an SQS queue, the
	// guard's Options.Wait. For all other sources, until shortly before the deadline: a message
	// that failed sooner might use up its retries before the other attempt's lease ends.
	Wait time.Duration
	// Timeout limits the time of one message's handler, so that a slow message leaves time for the
	// others. The handler's context ends after this time. Requests to the store and Wait are not
	// included. Default: 0, no limit; the context then ends shortly before the invocation does.
	//
	// If a handler returns an error because its context has ended, the message fails like any
	// other. Nothing can stop a handler that ignores its context: the batch waits until the
	// invocation times out, and Lambda retries the whole batch. The lease lasts until then, so no
	// other attempt runs.
	//
	// With Concurrency 1, every message of a batch of n can begin if Timeout is (t - 1 s) / n,
	// where t is the function's timeout.
	Timeout time.Duration
	// Concurrency is the number of messages that run at the same time. Messages of the
	// same group (FIFO group, partition key, Kafka partition, item of a table, or document)
	// or with the same key always run one after the other. Default: 1, in the order of the batch.
	Concurrency int
	// StopBatch stops the whole batch after the first failure: no further message begins, as AWS
	// recommends for FIFO queues ("Handling errors for an SQS event source in Lambda"). Default:
	// false; a failure then stops only the later messages of the same group. See [Guard.SQS].
	StopBatch bool
	// WholeBatch makes the handler return a *[BatchError] if any message fails, so that Lambda
	// retries the whole batch. Set it for an event source mapping without ReportBatchItemFailures:
	// for such a mapping, Lambda treats a list of failures as a success. Default: false; the
	// response then lists the failed messages.
	WholeBatch bool
	// Discard reports whether to give up on a message that the guard refuses with [ErrKeyMissing],
	// [ErrKeyInvalid] or [ErrPayloadMismatch]. If Discard returns true, the message is acknowledged
	// without running, and a warning is logged on slog.Default(). If cause is an
	// [ErrPayloadMismatch], identical messages later in the same batch are acknowledged too,
	// without a call of Discard. Default: nil; a refused message is then reported as failed.
	// Discard must be safe for concurrent use if Concurrency is above 1.
	//
	// A shard of a stream can't advance past a failed message until the retry limits of its event
	// source mapping are reached. To let it advance, store the message elsewhere and then return
	// true.
	//
	// Some refusals are temporary:
	//
	//   - [ErrKeyInvalid], if cause wraps a temporary error of BatchOptions.Key. Return false for
	//     such an error.
	//   - [ErrPayloadMismatch], until the record of the other payload expires.
	//
	// The guard does not call Discard, and the message fails, in these cases:
	//
	//   - The record may be from an earlier delivery of the same message that did not succeed. This
	//     is so if the fingerprint options have changed since then, unless the record was completed
	//     with [OutcomeSucceeded].
	//   - A function of the application, such as Key, panicked before the handler could run.
	//   - The handler ran before the guard refused the message, and may have had an effect. It ran
	//     without a lease (Options.FailOpen), lost its lease to another attempt, or ran under
	//     Options.Optimistic and made a guarded call, whose effect remains.
	//   - The handler ran under Options.Optimistic. An answer to the message may have expired
	//     during the run, and a message with another payload may have replaced it.
	Discard func(ctx context.Context, m M, cause error) bool
	// OnFailure is called for each failed message, with its error. The error has the code
	// [ErrNotBegun] if the handler was not called because too little time was left or an earlier
	// message failed. OnFailure must be safe for concurrent use if Concurrency is above 1. Default:
	// nil; the guard then logs a warning on slog.Default() for each message that began and failed,
	// and one warning for all messages that did not begin.
	OnFailure func(context.Context, M, error)
}

func settleBatch[M any](optFns []func(*BatchOptions[M])) BatchOptions[M] {
	var o BatchOptions[M]
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Concurrency < 0 {
		panic(fmt.Sprintf("lambdaidem: BatchOptions.Concurrency is %d; it must be positive, or 0 for the default", o.Concurrency))
	}
	if o.Timeout < 0 {
		panic(fmt.Sprintf("lambdaidem: BatchOptions.Timeout is %v; it must be positive, or 0 for none", o.Timeout))
	}
	if o.Wait < 0 {
		panic(fmt.Sprintf("lambdaidem: BatchOptions.Wait is %v; it must be positive, or 0 for the default", o.Wait))
	}
	o.FingerprintAttributes = slices.Clone(o.FingerprintAttributes)
	return o
}
