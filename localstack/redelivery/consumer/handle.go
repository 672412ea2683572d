package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/redelivery"
)

var errAsked = errors.New("it was told to fail")

// handle handles a message of any source. It enlists the message's effect before it follows the
// deed, so the effect must be dropped if the deed does not succeed.
func (c *consumer) handle(ctx context.Context, body string) error {
	var m redelivery.Message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return fmt.Errorf("read the message: %w", err)
	}
	if err := m.Valid(); err != nil {
		return err
	}
	run, err := c.ledger.Begin(ctx, m.Name, requestOf(ctx))
	if err != nil {
		return err
	}
	c.ledger.Enlist(dynamostore.Enlist(ctx), m)
	switch m.Deed(run) {
	case redelivery.Fail:
		return errAsked
	case redelivery.Refuse:
		return lambdaidem.Permanent(errAsked)
	case redelivery.Panic:
		panic(errAsked)
	case redelivery.Crash:
		die()
	case redelivery.Hang:
		select {}
	case redelivery.Vanish:
		c.doomed.Store(true)
	case redelivery.Wait:
		return c.gate(ctx, m.Name)
	case redelivery.Succeed:
	}
	return nil
}

// gate waits until the gate of a message is open. It returns an error if ctx ends first.
func (c *consumer) gate(ctx context.Context, message string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		isOpen, err := c.ledger.IsOpen(ctx, message)
		if isOpen || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
