// Package driver defines the protocol between the scoreboard and the drivers of its peers.
//
// A driver is a process that guards one handler with one peer. It reads one JSON object per
// line from its standard input, and writes one per line to its standard output:
//
//	← {"id":1,"request":{…},"left_ms":10000,"script":{…}}   serve this request
//	← {"id":1,"resume":true}                                the handler may go on
//	→ {"id":0,"ready":true,"clock_ms":1795703211998}        the driver reads its input
//	→ {"id":1,"ran":true}                                   the handler runs
//	→ {"id":1,"answer":{…}}                                 this is what the caller receives
//
// Many calls can be in progress at the same time. A driver ends when its input ends. Drivers in other
// languages than Go are in bench/peers/python and bench/peers/node.
package driver

// Message is one line, in either direction.
type Message struct {
	ID int `json:"id"`

	// To the driver: a call if Request is set, otherwise Resume.
	Request *Request `json:"request,omitempty"`
	LeftMS  int      `json:"left_ms,omitempty"` // milliseconds until the invocation's deadline
	Script  Script   `json:"script,omitzero"`
	Resume  bool     `json:"resume,omitempty"`

	// From the driver.
	Ready   bool    `json:"ready,omitempty"`
	ClockMS int64   `json:"clock_ms,omitempty"` // with Ready: the time by the peer's clock, in milliseconds since 1970
	Ran     bool    `json:"ran,omitempty"`
	Answer  *Answer `json:"answer,omitempty"`
	TookUS  int64   `json:"took_us,omitempty"` // with Answer: how long the guarded call took in the driver, in microseconds
}

// Request is an HTTP request of an authenticated caller: a POST with a JSON body.
type Request struct {
	Path   string `json:"path"`
	Caller string `json:"caller"`        // the subject of the caller's token
	Key    string `json:"key,omitempty"` // the idempotency key; empty: no header
	Body   string `json:"body"`
}

// Script tells the handler what to do in one call. The handler follows the fields in their order.
type Script struct {
	Mutate bool   `json:"mutate,omitempty"` // overwrite parts of the input
	Add    string `json:"add,omitempty"`    // add 1 to the balance of the account with this id
	Hold   bool   `json:"hold,omitempty"`   // wait for Resume
	Fail   bool   `json:"fail,omitempty"`   // return or raise an error instead of the response

	Status int    `json:"status,omitempty"` // the response's status
	Body   []byte `json:"body,omitempty"`
	Binary bool   `json:"binary,omitempty"` // Body is not text
}

// Answer is what the caller receives: a response, or the error that leaves the function.
type Answer struct {
	Status   int    `json:"status,omitempty"`
	Location string `json:"location,omitempty"` // a response header that the handler sets
	Body     []byte `json:"body,omitempty"`
	Error    string `json:"error,omitempty"` // the error's type or code
}

// Location is the value of the Location header of every response of a handler.
const Location = "/payments/1"

// ScriptedError is the Error of an Answer if the handler failed because its script says Fail.
const ScriptedError = "the handler's error"
