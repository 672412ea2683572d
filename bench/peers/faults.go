package main

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// faults is what the proxy does to the requests of one scenario. At first all of them pass.
type faults struct {
	requests atomic.Int32                       // that arrived
	slow     atomic.Bool                        // the database took longer than mostLatency for one of them
	next     atomic.Pointer[func() proxy.Fault] // for every write; nil: it passes
	reads    atomic.Bool                        // next is for reads too
}

// mostLatency is how long the database may take for a request. A peer whose SDK gives up
// earlier than another's would be judged by the machine's load.
const mostLatency = time.Second

// choose returns the fault for one request.
func (f *faults) choose(r *proxy.Request) proxy.Fault {
	f.requests.Add(1)
	if next := f.next.Load(); next != nil && (writes[r.Operation] || f.reads.Load()) {
		if fault := (*next)(); fault != nil {
			return fault
		}
	}
	return f.deliver
}

// deliver lets a request through, and notes if that takes too long.
func (f *faults) deliver(c *proxy.Call) {
	began := time.Now()
	proxy.Pass(c)
	if time.Since(began) > mostLatency {
		f.slow.Store(true)
	}
}

// writes are the operations that a peer locks, completes or releases a record with.
var writes = map[string]bool{"PutItem": true, "UpdateItem": true, "DeleteItem": true, "TransactWriteItems": true}

// pass lets everything through from now on.
func (f *faults) pass() { f.next.Store(nil) }

// every does the same to every write from now on.
func (f *faults) every(fault proxy.Fault) {
	next := func() proxy.Fault { return fault }
	f.next.Store(&next)
}

// once does fault to the next write; those after it pass.
func (f *faults) once(fault proxy.Fault) {
	var done atomic.Bool
	next := func() proxy.Fault {
		if done.Swap(true) {
			return nil
		}
		return fault
	}
	f.next.Store(&next)
}

// refuse answers a write with an error of DynamoDB that no client retries.
func refuse(c *proxy.Call) {
	c.Answer(proxy.Reply{
		Status: http.StatusBadRequest,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   []byte(`{"__type":"com.amazon.coral.service#AccessDeniedException","message":"made by the fault proxy"}`),
	})
}
