package lambdaidem

// Policy decides what the guard does with a record after a run of its handler has died or
// has ended with [OutcomeUncertain]. Nobody then knows which effects that run had. The guard
// applies the Policy to the next request that arrives after the run's lease has ended.
type Policy string

// The policies.
const (
	// Rerun lets the next request run the handler again after a run whose effects are
	// unknown. The new run has a higher attempt number. Effects happen at least once,
	// except enlisted writes (see [Tx]), which happen exactly once. Rerun is the default.
	Rerun Policy = "rerun"
	// Hold lets no later request run the handler after a run whose effects are unknown. Every such
	// request gets 409 [ErrAttemptAbandoned] until an operator decides about the record, even if
	// the request reaches a guard with policy Rerun. Effects happen at most once.
	//
	// Under Hold, the default outcome is [OutcomeUncertain] after a 5xx, after a panic, and after
	// an error that was neither made by [Reject] nor marked by a function such as [Retryable]. Mark
	// an error as Retryable if the handler had no effect.
	Hold Policy = "hold"
)
