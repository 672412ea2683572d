package main

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestABatchThatComesTwiceIsShippedOnce(t *testing.T) {
	var shipped []string
	ship := func(_ context.Context, m events.SQSMessage) error {
		shipped = append(shipped, m.Body)
		return nil
	}
	orders := idemtest.SQS("orders.fifo", idemtest.Message{Group: "alice", Body: `{"order":17}`}, idemtest.Message{Group: "bob", Body: `{"order":18}`})
	idemtest.Twice(t, lambdaidem.New(memstore.New()).SQS(ship), orders)
	if len(shipped) != 2 {
		t.Errorf("shipped %q", shipped)
	}
}
