package window

// fault is a fault that a person can arm on the page.
type fault struct {
	Name string
	Text string // of the button
	Does string // what it will do
}

var pageFaults = []fault{
	{faultKill, "Kill the process", "The next process that has run a handler dies just before the write that stores the answer leaves it. If another fault strikes that write, the process dies before it sends the write again."},
	{faultLock, "Lose the reply to the lock", "DynamoDB gets the next attempt to lock a record, and the process does not hear of the outcome."},
	{faultCompletion, "Lose the reply to the completion", "DynamoDB stores the next answer, which completes the record, and the process does not hear of it."},
	{faultResponse, "Lose the client's response", "The client's connection breaks just before the answer to the next request arrives. It is not for the 50 at once."},
	{faultLate, "Let the lease expire", "The network holds up the next answer on its way to DynamoDB until the lease is over and the request, repeated, is done. This takes as long as the lease."},
}

// action is a button that sends something.
type action struct {
	Name string
	Text string
	Does string
}

var pageActions = []action{
	{"send", "Send", "Sends the request under the key above."},
	{"repeat", "Repeat the last", "Sends the last request again: the same key, and the body that it had at first."},
	{"fifty", "Repeat 50 times at once", "Sends the last request 50 times at the same moment."},
	{"other", "Repeat with another body", "Sends another body under the key of the last request. It does not count as the last."},
}
