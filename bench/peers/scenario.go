package main

// scenario is a course of events for a guarded function, and the rule by which every peer is judged.
type scenario struct {
	name  string // for flags and tables
	title string // what happens, as a heading
	story string // what happens, in sentences
	rule  string // what must hold, in sentences
	needs []need // features without which the scenario doesn't apply to a peer
	timed bool   // the play waits for seconds, and its outcome depends on their length
	play  func(*stage) error
	holds func(seen) bool // reports whether the rule holds
}

// need is a feature that not every peer has.
type need string

const (
	needsStore  need = "store"  // the records are in DynamoDB
	needsLease  need = "lease"  // an attempt's right to finish ends at a set time
	needsWait   need = "wait"   // a duplicate can wait for the first attempt
	needsSecret need = "secret" // fingerprints are signed with a secret
)

// The verdicts of a result.
const (
	yes           = "yes"
	no            = "no"
	notApplicable = "n/a"
)

// result is the outcome of one scenario with one peer.
type result struct {
	Verdict  string `json:"verdict"`
	Evidence string `json:"evidence"` // how often the handler ran and what each caller received; with n/a, the reason
}
