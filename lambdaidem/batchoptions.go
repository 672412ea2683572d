package lambdaidem

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// BatchOptions are the settings of one decorator of messages or stream records
// ([Guard.SQS] and its like). The zero value of every field is its default.
type BatchOptions[M any] struct {
	// Key finds the idempotency key of a message (K5). An empty one is a missing
	// key. Default: what the sender gave as [MessageKey], else the id that the
	// source itself gave the message, which is the same in each delivery of it.
	//
	// A redrive from a dead-letter queue, and a sender that sends again, make a new
	// message with a new id. Where effects may have happened by then, the sender
	// must give a key, or Key derive one from the message. Under policy [Hold] a
	// warning says so, once, where the source's own id is taken.
	//
	// It is asked for every message before the first begins, so it should be quick.
	// Options.ValidateKey has its say of what it returns.
	Key func(context.Context, M) (string, error)
	// Operation says what is done: with the key it identifies the record (F1, V3).
	// Default: the source's ARN; of an EventBridge event see [Guard.EventBridge]. The
	// consumers of a queue and of its dead-letter queue share their records if both
	// have the same Operation, and their guards the same Options.Namespace. So do two
	// handlers of one source: give each an Operation of its own, or the second takes
	// for done what the first did.
	Operation string
	// FingerprintAttributes names the message attributes of SQS and SNS that count in
	// the fingerprint, by name, type and value: a tenant or a currency that is not in
	// the body. Names match without case. A message that lacks a named attribute differs
	// from one that has it. Default: none, because tracers add attributes that differ
	// each time a sender sends a message again.
	//
	// A change of the list makes a different payload of messages that are in flight: under
	// a key whose record exists they fail with [ErrPayloadMismatch].
	FingerprintAttributes []string
	// Wait is how long a message waits for another attempt at it that is in progress,
	// within the invocation's deadline (L8, V2). Default: of a queue Options.Wait; of a
	// stream and of asynchronous events, whose retries may run out before a lease ends,
	// until the deadline.
	Wait time.Duration
	// Timeout is how long the handler of one message may run: then its context ends, so
	// that one message that hangs leaves time for those after it. It is counted from
	// the start of the handler; the time that the store takes, and a Wait, come on top.
	//
	// A handler that returns an error once its context has ended fails its message, which
	// is released, or held under policy [Hold], like any other error. Nothing can end
	// a handler that ignores its context: the batch waits for it, and when the
	// invocation times out, all of the batch comes again. Its lease lasts to the
	// invocation's end, so no other attempt overlaps it.
	//
	// Default: none, the context ends shortly before the invocation does. The guard
	// can't know how long a message may take. With Concurrency 1, the function's timeout
	// less a second, divided by the batch size, lets every message have its turn.
	Timeout time.Duration
	// Concurrency is how many messages run at a time. Messages of one group (a FIFO
	// group, a partition key, an item of a table) never do, nor those of one key.
	// Default: 1, in the order of the batch.
	Concurrency int
	// StopBatch lets nothing of a batch begin after its first failure, as AWS
	// advises for FIFO queues ("Handling errors for an SQS event source in Lambda").
	// Default: nothing of the same group; see [Guard.SQS].
	StopBatch bool
	// WholeBatch fails the whole batch where one message fails, by a *[BatchError]:
	// for event source mappings without ReportBatchItemFailures, which take a list
	// of failures for a success. Default: the failed messages are reported.
	WholeBatch bool
	// Discard is asked about each message that the guard refuses for what it says, and
	// would refuse again each time: its error is an [ErrKeyMissing], an [ErrKeyInvalid]
	// or an [ErrPayloadMismatch]. If Discard returns true, the message is acknowledged
	// although it never ran, and a warning on slog.Default() says so. A shard stops at
	// such a record until its mapping gives it up, so store the record elsewhere, then
	// return true. Two warnings: an error that Key returned is an ErrKeyInvalid too, so
	// return false if it may pass; and a mismatch lasts as long as the record that it
	// doesn't match. An identical message later in the batch is acknowledged with it,
	// without a call. It must be safe for concurrent use if Concurrency is above 1.
	// Default: nil, such a message is reported as failed.
	Discard func(ctx context.Context, m M, why error) bool
	// OnFailure is told of each message that was not done, and why; an error of
	// code [ErrNotBegun] says that it never began. It must be safe for concurrent
	// use if Concurrency is above 1. Default: a warning on slog.Default() for each
	// message that did begin, and one for all messages of a batch that did not.
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

// BatchError is the error of a batch that failed as a whole: of an asynchronous
// invocation of several records, and with BatchOptions.WholeBatch. errors.Is and
// errors.As reach what each message failed with.
type BatchError struct {
	Messages int     // in the batch
	Errs     []error // of those that failed, in their order
}

// Error counts the failures, and has the first one's text.
func (e *BatchError) Error() string {
	return fmt.Sprintf("%d of %d messages failed; the first: %v", len(e.Errs), e.Messages, e.Errs[0])
}

// Unwrap returns Errs.
func (e *BatchError) Unwrap() []error { return e.Errs }
