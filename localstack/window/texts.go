package window

// fault is a fault that a person can arm on the page.
type fault struct {
	Name string
	Text string // of the button
	Does string // what it will do
	Look string // what to look for afterwards
}

var pageFaults = []fault{
	{
		faultKill, "Kill the process",
		"The process of the next request dies when its handler has run, before the answer is stored.",
		"The record stays locked by a process that is dead. Repeat the request: until the lease is over, you are told to come back later. " +
			"After that, the next attempt takes the record over and runs the handler.",
	},
	{
		faultLock, "Lose the reply to the lock",
		"DynamoDB locks the next record, and the process does not hear of it.",
		"The process asks again, and is refused. The record that DynamoDB sends along has the attempt's own token, so the attempt knows that it has the lock.",
	},
	{
		faultCompletion, "Lose the reply to the completion",
		"DynamoDB stores the next answer, which completes the record, and the process does not hear of it.",
		"The process sends the same write again. Whatever DynamoDB says to the second write, the answer is stored once, and the client gets it.",
	},
	{
		faultResponse, "Lose the client's response",
		"The client's connection breaks just before the answer to the next request arrives.",
		"The client knows nothing, but the answer is in the record. Repeat the request: the client gets the stored answer, and the handler does not run again.",
	},
	{
		faultLate, "Let the lease expire",
		"The network holds up the next answer on its way to DynamoDB until the lease is over and the request, repeated, is done. This takes as long as the lease.",
		"The late request arrives when attempt 2 has the record. It has the token of attempt 1, so DynamoDB refuses it: a late attempt can't overwrite anything.",
	},
}

// lookFor returns what to look for after a fault.
func lookFor(name string) string {
	for _, f := range pageFaults {
		if f.Name == name {
			return f.Look
		}
	}
	return ""
}

// action is a button that sends something.
type action struct {
	Name string
	Text string
	Does string
}

var pageActions = []action{
	{"send", "Send", "Sends the request under the key above."},
	{"repeat", "Repeat the last", "Sends the last request again: the same key, the same body."},
	{"fifty", "Repeat 50 times at once", "Sends the last request 50 times at the same moment."},
	{"other", "Repeat with another body", "Sends another body under the key of the last request."},
}

// What to look for in the diagram, after a request.
const (
	lookSend = "Find the row in which the record is locked, and the one in which the answer is stored. Between them the handler runs. " +
		"Was the key used before? Then there is no second run, and the answer says so."
	lookRepeat = "The lock is refused, because there is a record. If it is completed, its answer is returned: the same as before, and no handler runs. " +
		"If it is in progress, the client is told to come back later."
	lookMany  = "Count the rows in which an answer is stored: there is one at most. All others get that answer, or are told to come back later."
	lookOther = "The fingerprint in the record is that of the first body, so the second body is refused (422). Nothing runs."
)
