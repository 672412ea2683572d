package redelivery

import "fmt"

// Source is a kind of event source. Its value is what the consumer's environment
// variable [SourceVariable] says.
type Source string

// The sources that the consumer knows.
const (
	SQS            Source = "sqs" // standard and FIFO, told apart by the queue's ARN
	SNS            Source = "sns"
	EventBridge    Source = "eventbridge"
	Kinesis        Source = "kinesis"
	DynamoDBStream Source = "dynamodb"
	Kafka          Source = "kafka"
)

// The consumer's environment, all required but the last two.
const (
	SourceVariable      = "REDELIVERY_SOURCE"      // a Source
	RecordsVariable     = "REDELIVERY_RECORDS"     // the table of idempotency records
	LedgerVariable      = "REDELIVERY_LEDGER"      // the table of the Ledger
	SkewVariable        = "REDELIVERY_SKEW"        // Options.MaxSkew, a duration; default: the guard's
	ConcurrencyVariable = "REDELIVERY_CONCURRENCY" // BatchOptions.Concurrency; default: the guard's
)

// Deed is what a handler does in one run at a message, after it has enlisted its
// effect.
type Deed string

// The deeds.
const (
	Succeed Deed = "succeed" // returns nil
	Fail    Deed = "fail"    // returns an error
	Refuse  Deed = "refuse"  // returns an error that is marked as permanent
	Panic   Deed = "panic"   // panics
	Crash   Deed = "crash"   // kills its own process by SIGKILL, before the commit
	Hang    Deed = "hang"    // never returns, whatever its context says
	Vanish  Deed = "vanish"  // returns nil; its process kills itself before it answers
	Wait    Deed = "wait"    // returns nil when the message's gate is open; an error when its context ends
)

// Message is the body of every message: its name, and what to do.
type Message struct {
	// Name is the message's own, and its effect's.
	Name string
	// Group is what its effect is logged under, in the order of commits.
	Group string
	// Deeds are those of its first runs; each later run does Then.
	Deeds []Deed
	// Then is what it does for ever after. Default: Succeed.
	Then Deed
}

// Deed is what the handler does in a run, counted from 1.
func (m Message) Deed(run int) Deed {
	switch {
	case run <= len(m.Deeds):
		return m.Deeds[run-1]
	case m.Then == "":
		return Succeed
	}
	return m.Then
}

// Poison tells whether the message never succeeds.
func (m Message) Poison() bool { return m.Then != "" && m.Then != Succeed }

// fails tells whether a deed is reported as a failure, where its process lives on.
// To wait may fail, and may not.
func (d Deed) fails() bool { return d == Fail || d == Refuse || d == Panic || d == Wait }

// kills tells whether a deed takes the answer of its whole batch with it.
func (d Deed) kills() bool { return d == Crash || d == Hang || d == Vanish }

// Valid says what is wrong with a message that a consumer was sent.
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
