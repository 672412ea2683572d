package operate_test

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// holdCompletion holds the next commit of a payment. By then, the attempt has only the commit
// left, and still has its lease.
func holdCompletion(w *world) *proxy.Gate {
	gate, accounts := proxy.HoldRequest(), []byte(w.stack.Table("AccountsTable"))
	var once atomic.Bool
	w.inject(func(r *proxy.Request) proxy.Fault {
		if r.Operation == "TransactWriteItems" && bytes.Contains(r.Body, accounts) && once.CompareAndSwap(false, true) {
			return gate.Fault
		}
		return nil
	})
	return gate
}

// reached waits until a request is at the gate.
func reached(t *testing.T, gate *proxy.Gate) {
	t.Helper()
	select {
	case <-gate.Reached():
	case <-time.After(20 * time.Second):
		t.Fatal("the attempt has not come to its end in 20 s")
	}
}

// inject sets the fault for requests of the functions to the database. nil means no fault.
func (w *world) inject(fault func(*proxy.Request) proxy.Fault) {
	if fault == nil {
		w.fault.Store(nil)
		return
	}
	w.fault.Store(&fault)
}

// throttled returns a fault that throttles a write as DynamoDB does because of one limit (API
// Reference, "ThrottlingReason"). DynamoDB Local never throttles.
func throttled(reason string) proxy.Fault {
	return func(c *proxy.Call) {
		c.Answer(proxy.Reply{
			Status: http.StatusBadRequest,
			Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"throttled",` +
				`"ThrottlingReasons":[{"reason":"` + reason + `","resource":"arn:aws:dynamodb:us-east-1:000000000000:table/IdempotencyTable"}]}`),
		})
	}
}

// locks returns a function for inject that throttles the requests that claim a record, because of
// one limit.
func locks(reason string) func(*proxy.Request) proxy.Fault {
	return func(r *proxy.Request) proxy.Fault {
		if r.Operation == "PutItem" && bytes.Contains(r.Body, []byte("lambdaidem#")) {
			return throttled(reason)
		}
		return nil
	}
}
