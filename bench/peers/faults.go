package main

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// faults decides what the proxy does to the requests of one run. The zero value lets all pass.
type faults struct {
	requests atomic.Int32                       // the number of requests
	slow     atomic.Bool                        // a request took the database longer than mostLatency
	next     atomic.Pointer[func() proxy.Fault] // returns the fault for a write, or nil to let the write pass
	reads    atomic.Bool                        // next is also called for reads
}

// mostLatency is the maximum time that the database may take for a request. With a slower database
// the verdict would depend on the machine's load, because some SDKs give a request up sooner than
// others.
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

// deliver lets a request pass, and records whether the database was too slow.
func (f *faults) deliver(c *proxy.Call) {
	began := time.Now()
	proxy.Pass(c)
	if time.Since(began) > mostLatency {
		f.slow.Store(true)
	}
}

// writes has the operations with which a peer locks, completes or releases a record.
var writes = map[string]bool{"PutItem": true, "UpdateItem": true, "DeleteItem": true, "TransactWriteItems": true}

// pass lets all further requests pass.
func (f *faults) pass() { f.next.Store(nil) }

// every applies the fault to every further write.
func (f *faults) every(fault proxy.Fault) {
	next := func() proxy.Fault { return fault }
	f.next.Store(&next)
}

// once applies the fault to the next write, and lets the writes after it pass.
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

// refuse is a fault that answers a request with an error of DynamoDB which no SDK retries.
func refuse(c *proxy.Call) {
	c.Answer(proxy.Reply{
		Status: http.StatusBadRequest,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   []byte(`{"__type":"com.amazon.coral.service#AccessDeniedException","message":"made by the fault proxy"}`),
	})
}
