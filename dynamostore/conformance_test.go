package dynamostore

import (
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

func TestConformance(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	t.Run("suite", func(t *testing.T) { // returns after its parallel steps, before the table is deleted
		storetest.Test(t, func(*testing.T) lambdaidem.Store { return s })
	})
}

func TestConformanceWithRenamedAttributes(t *testing.T) {
	client, table := freshTable(t, renamed)
	s := New(client, table, patient, renamed)
	t.Run("suite", func(t *testing.T) {
		storetest.Test(t, func(*testing.T) lambdaidem.Store { return s })
	})
	if err := s.CheckTable(t.Context()); err != nil {
		t.Error(err)
	}
}

func renamed(o *Options) {
	o.IDAttribute, o.StatusAttribute, o.ExpirationAttribute = "pk", "state", "ttl"
	o.InProgressExpirationAttribute, o.DataAttribute, o.ValidationAttribute = "lock_until", "payload", "hash"
}
