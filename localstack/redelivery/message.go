package redelivery

import "fmt"

// Source is a kind of event source. The environment variable [SourceVariable] of the consumer
// contains it.
type Source string

// The sources that the consumer knows.
const (
	SQS            Source = "sqs" // standard and FIFO; the queue's ARN tells which
	SNS            Source = "sns"
	EventBridge    Source = "eventbridge"
	Kinesis        Source = "kinesis"
	DynamoDBStream Source = "dynamodb"
	Kafka          Source = "kafka"
)

// The consumer's environment variables. All but the last two are required.
const (
	SourceVariable      = "REDELIVERY_SOURCE"      // a Source
	RecordsVariable     = "REDELIVERY_RECORDS"     // the table of idempotency records
	LedgerVariable      = "REDELIVERY_LEDGER"      // the table of the Ledger
	SkewVariable        = "REDELIVERY_SKEW"        // Options.MaxSkew, a duration; default: the guard's
	ConcurrencyVariable = "REDELIVERY_CONCURRENCY" // BatchOptions.Concurrency; default: the guard's
)

// Deed is what a handler does in one run of a message, after it has enlisted the effect.
type Deed string

// The deeds.
const (
	Succeed Deed = "succeed" // returns nil
	Fail    Deed = "fail"    // returns an error
	Refuse  Deed = "refuse"  // returns an error that is marked as permanent
	Panic   Deed = "panic"   // panics
	Crash   Deed = "crash"   // kills its own process with SIGKILL, before the commit
	Hang    Deed = "hang"    // never returns, even after its context ends
	Vanish  Deed = "vanish"  // returns nil, but the process kills itself before it answers
	Wait    Deed = "wait"    // returns nil when the message's gate opens, or an error when the context ends
)

// Message is the body of every message. It tells the handler what to do.
type Message struct {
	// Name identifies the message and its effect.
	Name string
	// Group is the group in which the ledger records the order of commits.
	Group string
	// Deeds are the deeds of the first runs. All later runs do Then.
	Deeds []Deed
	// Then is the deed of every run after those in Deeds. Default: Succeed.
	Then Deed
}

// Deed returns what the handler does in a run. Runs are counted from 1.
func (m Message) Deed(run int) Deed {
	switch {
	case run <= len(m.Deeds):
		return m.Deeds[run-1]
	case m.Then == "":
		return Succeed
	}
	return m.Then
}

// Poison reports whether the message never succeeds.
func (m Message) Poison() bool { return m.Then != "" && m.Then != Succeed }

// fails reports whether a message with this deed may be reported as failed by a process that
// survives. For Wait, both success and failure are possible.
func (d Deed) fails() bool { return d == Fail || d == Refuse || d == Panic || d == Wait }

// kills reports whether a deed makes the whole batch lose its answer.
func (d Deed) kills() bool { return d == Crash || d == Hang || d == Vanish }

// Valid returns an error if the name or the group is empty, or if a deed is unknown.
func (m Message) Valid() error {
	for _, d := range append([]Deed{m.Deed(len(m.Deeds) + 1)}, m.Deeds...) {
		switch d {
		case Succeed, Fail, Refuse, Panic, Crash, Hang, Vanish, Wait:
		default:
			return fmt.Errorf("redelivery: message %q asks for the unknown deed %q", m.Name, d)
		}
	}
	if m.Name == "" || m.Group == "" {
		return fmt.Errorf("redelivery: message %q has the group %q; it needs a name and a group", m.Name, m.Group)
	}
	return nil
}
