// Package storetest implements a test suite for implementations of [lambdaidem.Store]. Every
// Store must pass it. The suite is a list of steps, returned by [Steps]. Each step tests one
// rule of the Store contract. To test a store, call [Test]:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t *testing.T) lambdaidem.Store { return memstore.New() })
//	}
//
// A step reports a violation by returning an error, not by failing a test. So the suite also
// runs outside of tests, with [Run], and tests of the suite can check that it detects broken
// stores.
//
// The suite never waits, because the time is an argument of each call of a store. The times that it
// uses begin two hours after the current time; see [Env].Base. So none of its records expires in
// real time during a run of up to two hours. A database that deletes expired records (DynamoDB's
// TTL) can't interfere.
//
// Every record that the suite leaves behind expires within two days. Each [Env] uses new ids, so
// the table may contain other records, and steps may run in parallel.
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

// Env is the environment in which a [Step], one test of this suite, runs: the store under test, and
// the ids and times of its records. Create an Env with [NewEnv]. Run each Step at most once in an
// Env, because a second run would find the records of the first.
type Env struct {
	// Store is the store under test.
	Store lambdaidem.Store
	// Prefix is the prefix of the id of every record. It is random, so that two runs with
	// the same table use different records.
	Prefix string
	// Base is the simulated time at which each [Step] of the suite begins. The Step passes Base and
	// later times to the store as the current time. Base is in whole seconds, and two hours after
	// the real time, so that no record expires in real time while the suite runs. A database that
	// deletes expired records then deletes none that a Step still needs.
	Base time.Time
}

// ahead is how far in the future the clock of a run starts; see Env.Base. A run must not take
// longer than that. Otherwise the database's clock might pass the expiry of records that the
// run still needs, and the database might delete them.
const ahead = 2 * time.Hour

// NewEnv returns an Env for tests of store. The records of the Env have ids that no other Env
// uses. To run a test of the store twice, make two Envs.
func NewEnv(store lambdaidem.Store) Env {
	return Env{
		Store:  store,
		Prefix: "lambdaidem#storetest-" + rand.Text() + "-",
		Base:   time.Now().Add(ahead).Truncate(time.Second).UTC(),
	}
}

// id returns the id of the record with the given name. A [Step] refers to each record by such a
// name.
func (e Env) id(name string) string {
	sum := sha256.Sum256([]byte(name))
	return e.Prefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// Step is one test of the suite, for one rule of the Store contract. It is unrelated to
// [lambdaidem.Step].
type Step struct {
	Name string // unique name of the step
	Rule string // short name of the rule in docs/correctness.md, such as "L3"
	Doc  string // the rule: what a store must do, and why
	// Run tests the store e.Store. It returns nil if the store obeys the rule in Doc, or an error
	// that says which call broke the rule and how.
	Run func(ctx context.Context, e Env) error
}

// Steps returns all steps of the suite. Basic rules come first, so fix the first failing step
// first.
func Steps() []Step {
	return slices.Concat(lifeSteps, lockSteps, fencingSteps, replySteps, takeoverSteps, expirySteps, answerSteps, largeSteps, savedSteps, holdSteps, commitSteps, raceSteps, contextSteps)
}

// Run runs all steps on store, one after the other. It returns nil if all steps pass. Otherwise it
// returns the errors of all failed steps, joined, each with the Name, Rule and Doc of its step.
func Run(ctx context.Context, store lambdaidem.Store) error {
	e := NewEnv(store)
	var errs []error
	for _, step := range Steps() {
		if err := step.Run(ctx, e); err != nil {
			errs = append(errs, fmt.Errorf("%s (%s): %w\nThe rule: %s", step.Name, step.Rule, err, step.Doc))
		}
	}
	return errors.Join(errs...)
}

// Test runs each [Step] of this test suite as a parallel subtest, on a store that newStore returns.
// It calls newStore once for each step.
//
// newStore may return the same store each time if the store deletes expired records by real time
// only. A store like memstore deletes them by the times that the steps pass to it, which differ by
// up to a century. For such a store, newStore must return a new store each time.
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
