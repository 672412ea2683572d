package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// answerSteps test that a store returns exactly the answer that was stored.
var answerSteps = []Step{
	{
		Name: "text comes back byte for byte",
		Rule: "R1",
		Doc:  "The store MUST return a value byte for byte. It must not encode JSON anew: white space and escapes stay.",
		Run: func(ctx context.Context, e Env) error {
			return keeps(ctx, e, "text", map[string]lambdaidem.Result{
				"JSON with white space":         value("{ \"amount\" : 1.50,\n\t\"b\":1e2, \"a\":[ ] }\r\n "),
				"JSON with escapes":             value(`{"s":"\u00e9\u2028<&>\/\ud83d\ude00"}`),
				"a number no float keeps":       value(`9007199254740993`),
				"a duplicate member":            value(`{"a":1,"a":2}`),
				"no JSON at all":                value("plain text, \u00e9, \u2028, 漢, 😀"),
				"text with a NUL and a BOM":     value("\ufeffbefore\x00after"),
				"what base64 looks like":        value("AAECAw=="),
				"a string that looks like null": value("null"),
			})
		},
	},
	{
		Name: "bytes come back byte for byte",
		Rule: "R1",
		Doc:  "The store MUST return a value byte for byte, even if it is not UTF-8.",
		Run: func(ctx context.Context, e Env) error {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			return keeps(ctx, e, "bytes", map[string]lambdaidem.Result{
				"every byte":               value(string(every)),
				"one byte that is no rune": value("\xff"),
				"a rune cut short":         value("ab\xe6\xbc"),
				"an encoded surrogate":     value("\xed\xa0\x80"),
				"a gzip header":            value("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"),
			})
		},
	},
	{
		Name: "an empty value is a value",
		Rule: "R1",
		Doc:  "A result with an empty or nil Value MUST come back with an empty Value and no Failure.",
		Run: func(ctx context.Context, e Env) error {
			none := value("")
			none.Value = nil
			return keeps(ctx, e, "empty", map[string]lambdaidem.Result{"empty": value(""), "nil": none})
		},
	},
	{
		Name: "a big value comes back whole",
		Rule: "R3",
		Doc:  "The store MUST accept a value of 100 KB and return it whole, even if it can't be compressed.",
		Run: func(ctx context.Context, e Env) error {
			const size = 100 << 10
			random := make([]byte, size)
			noise := rand.NewChaCha8([32]byte{})
			if _, err := noise.Read(random); err != nil {
				return err
			}
			return keeps(ctx, e, "big", map[string]lambdaidem.Result{
				"text":  value(strings.Repeat("payment ", size/len("payment "))),
				"bytes": value(string(random)),
			})
		},
	},
	{
		Name: "a value may be stored as failed",
		Rule: "L1",
		Doc:  "The store MUST keep the outcome of a result independently of its Value: an HTTP response with status 404 is a Value whose Outcome is OutcomeFailed.",
		Run: func(ctx context.Context, e Env) error {
			failed := value(`{"statusCode":404}`)
			failed.Outcome = lambdaidem.OutcomeFailed
			return keeps(ctx, e, "failed", map[string]lambdaidem.Result{"404": failed})
		},
	},
	{
		Name: "a failure comes back whole",
		Rule: "L1",
		Doc:  "The store MUST return the code, type, message and status of a Failure, and no Value beside it.",
		Run: func(ctx context.Context, e Env) error {
			return keeps(ctx, e, "failure", map[string]lambdaidem.Result{
				"a full one": failed(lambdaidem.Failure{Code: "card_declined", Type: "DeclinedError", Message: "declined: \"Müller\"\nas of 漢", Status: 402}),
				"a bare one": failed(lambdaidem.Failure{Code: lambdaidem.ErrPermanent}),
			})
		},
	},
	{
		Name: "an answer is the store's own",
		Rule: "G3",
		Doc:  "The store MUST copy answers when it stores and returns them: a caller that overwrites their memory must not change the record.",
		Run: func(ctx context.Context, e Env) error {
			return firstErrorOf(
				ownsAnswer(ctx, e.story(ctx, "an answer is the store's own, value"), value("first")),
				ownsAnswer(ctx, e.story(ctx, "an answer is the store's own, failure"), failed(lambdaidem.Failure{Code: "card_declined", Message: "first", Status: 402})),
			)
		},
	},
}

// value returns the result of a handler that succeeded with the value v.
func value(v string) lambdaidem.Result {
	return lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(v)}
}

// failed returns the result of a handler that failed with the failure f.
func failed(f lambdaidem.Failure) lambdaidem.Result {
	return lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: &f}
}

// keeps creates one record for each of the results and completes it with that result. It
// checks that the completion, a read after it and a refused acquire all return the result.
func keeps(ctx context.Context, e Env, step string, results map[string]lambdaidem.Result) error {
	for name, result := range results {
		s := e.story(ctx, step+": "+name)
		result.At = s.at(time.Second)
		result.Expires = s.at(answerTTL)
		a := s.acquires("the first acquire", s.claim("a", 0))
		done := s.completes("the completion", a, result)
		s.refuses("another acquire", s.claim("b", 2*time.Second), done)
		if s.err != nil {
			return fmt.Errorf("%s: %w", name, s.err)
		}
	}
	return nil
}

// ownsAnswer checks that the store keeps its own copy of an answer. It overwrites the memory
// of the answer that it passes to Complete, and of every answer that a method returns. Each
// time it checks that the stored record is unchanged.
func ownsAnswer(ctx context.Context, s *story, result lambdaidem.Result) error {
	result.At = s.at(time.Second)
	result.Expires = s.at(answerTTL)
	inProgress := s.acquires("the first acquire", s.claim("a", 0))
	if s.err != nil {
		return s.err
	}
	given := copied(result)
	wantRec := completed(inProgress, result)
	calls := []struct {
		label string
		call  func() (lambdaidem.Record, error)
	}{
		{"the completion", func() (lambdaidem.Record, error) {
			r, err := s.store.Complete(ctx, s.lease("a", time.Second), given)
			scribble(given)
			return r, err
		}},
		{"the completion again", func() (lambdaidem.Record, error) {
			return s.store.Complete(ctx, s.lease("a", time.Second), copied(result))
		}},
		{"a release", func() (lambdaidem.Record, error) {
			r, _ := s.store.Release(ctx, s.lease("a", 2*time.Second), s.at(2*time.Second)) // the error is ErrLeaseLost; other steps check it
			return r, nil
		}},
		{"a refused acquire", func() (lambdaidem.Record, error) { return s.store.Acquire(ctx, s.claim("b", 2*time.Second)) }},
		{"a read", func() (lambdaidem.Record, error) { return s.store.Get(ctx, s.id, s.at(2*time.Second)) }},
	}
	for _, c := range calls {
		gotRec, err := c.call()
		if err != nil {
			return fmt.Errorf("%s returned an error, want none: %w", c.label, err)
		}
		scribble(gotRec.Result)
		s.reads("after the caller overwrote the answer that it passed to and got from "+c.label, 2*time.Second, wantRec)
	}
	return s.err
}

// copied returns a deep copy of r.
func copied(r lambdaidem.Result) lambdaidem.Result {
	r.Value = bytes.Clone(r.Value)
	if r.Failure != nil {
		f := *r.Failure
		r.Failure = &f
	}
	return r
}

// scribble overwrites the memory that a result points to, like a caller that uses the memory
// again. The stored record must not change.
func scribble(r lambdaidem.Result) {
	for i := range r.Value {
		r.Value[i] = '#'
	}
	if r.Failure != nil {
		*r.Failure = lambdaidem.Failure{Message: "scribbled"}
	}
}

// firstErrorOf returns the first error that is not nil, or nil.
func firstErrorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
