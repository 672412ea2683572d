package proxy

// Trace is a set of hooks that run while a fault decides what becomes of one call. Any of
// them may be nil. They run in the goroutine of the call, which waits for them.
type Trace struct {
	// Deliver runs in place of the delivery to the database, and must call deliver once. So
	// it can say when the database carries the request out, and look at the database before
	// the caller learns of the reply.
	Deliver func(deliver func() (Reply, error)) (Reply, error)
	// Answer runs before a reply is sent to the caller. The parameter gone reports whether
	// the caller has closed its connection, or was killed, so that the reply reaches nobody.
	Answer func(reply Reply, gone bool)
	// Cut runs before the caller's connection is reset. If Deliver has not run, the request
	// is lost; otherwise the reply is.
	Cut func()
	// Killed is for faults of other packages that kill the caller: it runs in place of Cut,
	// before the caller is killed. The request is never delivered.
	Killed func()
}
