// Package storetest is the suite that every [lambdaidem.Store] must pass. It is
// a table of steps ([Steps]), each a short story about one rule of the Store
// contract. A store's own test is one line:
//
//	storetest.Test(t, func(t *testing.T) lambdaidem.Store { return memstore.New() })
//
// The suite returns errors instead of failing a test, so a broken store can
// prove that it is caught, and a simulator can run it where there is no test.
//
// Time is given to a store by its caller, so the suite never waits: it lives
// two hours ahead of the wall clock ([Env].Base). No record of its own expires
// before that by the wall clock, so that a database that deletes expired
// records by itself (DynamoDB's TTL) can't interfere; and every record that it
// leaves behind expires, within two days. Ids are fresh for each [Env]: the
// table may hold other records, and steps may run in parallel.
package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Env is what the steps run in. An Env serves one run of each step: a second
// run would find the records of the first.
type Env struct {
	Store lambdaidem.Store
	// Prefix begins the id of every record. It is random, so that two runs
	// never meet in one table.
	Prefix string
	// Base is the moment at which each step begins, whole seconds.
	Base time.Time
}

// ahead is how far Env.Base is ahead of the wall clock: the longest that a run
// may take before a database deletes what the run still needs.
const ahead = 2 * time.Hour

// NewEnv returns a fresh Env for one run over store.
func NewEnv(store lambdaidem.Store) Env {
	return Env{
		Store:  store,
		Prefix: "lambdaidem#storetest-" + rand.Text() + "-",
		Base:   time.Now().Add(ahead).Truncate(time.Second).UTC(),
	}
}

// id makes the id of the record that a step calls name.
func (e Env) id(name string) string {
	sum := sha256.Sum256([]byte(name))
	return e.Prefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// Step is one rule, shown on one store.
type Step struct {
	Name string // unique among the steps
	Rule string // the rule's name in the contract: "L3", say
	Doc  string // what must hold, and why
	// Run plays the step. Its error says which promise the store broke; it is
	// nil if the store kept them all.
	Run func(ctx context.Context, e Env) error
}

// Steps returns every step of the suite, in the order of a record's life.
func Steps() []Step {
	return slices.Concat(lifeSteps, lockSteps, fencingSteps, replySteps, takeoverSteps, expirySteps, answerSteps, largeSteps, savedSteps, raceSteps, contextSteps)
}

// Run plays every step on the store, one after the other. It returns nil if the
// store kept every promise; else all the errors, joined, each with the name and
// the rule of its step.
func Run(ctx context.Context, store lambdaidem.Store) error {
	e := NewEnv(store)
	var errs []error
	for _, step := range Steps() {
		if err := step.Run(ctx, e); err != nil {
			errs = append(errs, fmt.Errorf("%s (%s): %w", step.Name, step.Rule, err))
		}
	}
	return errors.Join(errs...)
}

// Test plays each step as a parallel subtest on the store that newStore
// returns. newStore is called once per step. It may return the same store each
// time, unless that store deletes what has expired by its callers' clocks, as
// memstore does: the steps' clocks differ by years.
func Test(t *testing.T, newStore func(t *testing.T) lambdaidem.Store) {
	t.Helper()
	for _, step := range Steps() {
		t.Run(step.Rule+" "+step.Name, func(t *testing.T) {
			t.Parallel()
			if err := step.Run(t.Context(), NewEnv(newStore(t))); err != nil {
				t.Errorf("%v\nThe rule: %s", err, step.Doc)
			}
		})
	}
}
