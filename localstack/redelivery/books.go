package redelivery

import (
	"slices"
	"time"
)

// Books is everything that is known after a run.
type Books struct {
	Ordered    bool       // the source promises to deliver each group in order
	Sent       []Message  // in the order of sending
	Deliveries []Delivery // all deliveries by the source
	Counts     map[string]Count
	Order      map[string][]string // for each group, the messages in the order of their commits

	// Kills is the number of busy processes that the test killed.
	Kills int
	// Lease is how long the lease of an attempt can last after its invocation has died: at most
	// the function's Timeout plus MaxSkew.
	Lease time.Duration
	// MinRunTime is the minimum time that must be left before a message begins.
	MinRunTime time.Duration
}

// Delivery is one invocation by the source.
type Delivery struct {
	Request  string // ID of the request
	Batch    []string
	Reported []string // messages that the answer reports as failed; an error reports the only message
	Lost     bool     // the process died, so there was no answer
	TimedOut bool     // the process was killed at the function's timeout; Lost is then true too
	Odd      string   // description of an answer that the source can't interpret; usually empty

	Began, Ended  time.Time     // by the source's clock
	Left          time.Duration // time until the function's deadline when it answered
	Before, After map[string]Count
}

// message returns the message with this name, and false if no such message was sent.
func (b Books) message(name string) (Message, bool) {
	i := slices.IndexFunc(b.Sent, func(m Message) bool { return m.Name == name })
	if i < 0 {
		return Message{}, false
	}
	return b.Sent[i], true
}
