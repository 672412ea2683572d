package main

import (
	"encoding/json"
	"sync/atomic"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// units has the sums of what DynamoDB Local reports for requests.
type units struct {
	requests      atomic.Int32
	writes, reads atomic.Int64 // request units, in thousandths
	failed        atomic.Int64 // the number of writes that failed
}

// meter is a fault that lets a request pass, and adds the capacity that it consumes to the sums.
func (u *units) meter(c *proxy.Call) {
	u.requests.Add(1)
	var body map[string]any
	if json.Unmarshal(c.Body, &body) == nil {
		body["ReturnConsumedCapacity"] = "TOTAL"
		if with, err := json.Marshal(body); err == nil {
			c.Body = with
		}
	}
	reply, err := c.Deliver()
	if err != nil {
		c.Cut()
		return
	}
	var out struct {
		ConsumedCapacity struct{ CapacityUnits float64 }
	}
	_ = json.Unmarshal(reply.Body, &out) // the body of an error has no capacity
	switch consumed := int64(1000 * out.ConsumedCapacity.CapacityUnits); {
	case !writes[c.Operation]:
		u.reads.Add(consumed)
	case reply.Status != 200:
		u.failed.Add(1)
	default:
		u.writes.Add(consumed)
	}
	reply.Header.Del("X-Amz-Crc32") // the checksum is of a reply without the capacity, as the SDK asked for
	c.Answer(reply)
}
