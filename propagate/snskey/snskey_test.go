package snskey_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate"
	"github.com/lambdaidem/toolkit/propagate/snskey"
)

type (
	message = sns.PublishInput
	entry   = types.PublishBatchRequestEntry
	batch   = sns.PublishBatchInput
	value   = types.MessageAttributeValue
)

func dedup(o *snskey.Options) { o.Deduplicate = true }

// guarded runs f in a guarded handler, in two attempts. The first attempt fails, so its record is
// released.
func guarded(t *testing.T, key string, f func(ctx context.Context)) {
	t.Helper()
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	for attempt := 1; attempt <= 2; attempt++ {
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: key}, func(ctx context.Context) (int, error) {
			f(ctx)
			if attempt == 1 {
				return 0, errors.New("died")
			}
			return 0, nil
		})
		if (err != nil) != (attempt == 1) {
			t.Fatal(err)
		}
	}
}

// same fails the test unless got equals want. what names the message.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(sns.PublishInput{}, sns.PublishBatchInput{}, types.PublishBatchRequestEntry{}, types.MessageAttributeValue{})); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// The key is the downstream key of the name, the same in every attempt. It is in the
// attribute that consumers read (V3).
func TestV4_TheKeyIsTheSameInEveryAttempt(t *testing.T) {
	var sent []message
	guarded(t, "k", func(ctx context.Context) {
		m := message{Message: aws.String("hello")}
		if err := snskey.Message(ctx, "receipt", &m); err != nil {
			t.Fatal(err)
		}
		want := message{Message: aws.String("hello"), MessageAttributes: map[string]value{
			"x-idempotency-key": {DataType: aws.String("String"), StringValue: aws.String(lambdaidem.DownstreamKey(ctx, "receipt"))},
		}}
		same(t, "message", m, want)
		e := entry{Id: aws.String("1")}
		if err := snskey.Entry(ctx, "receipt", &e, dedup); err != nil {
			t.Fatal(err)
		}
		same(t, "entry", e, entry{Id: aws.String("1"), MessageAttributes: want.MessageAttributes,
			MessageDeduplicationId: aws.String(lambdaidem.DownstreamKey(ctx, "receipt"))})
		sent = append(sent, m)
	})
	same(t, "second attempt", sent[1], sent[0])
}

// No message is left without a key unnoticed: outside a guarded handler, the functions return
// an error.
func TestV4_OutsideOfAGuardedHandlerIsAnError(t *testing.T) {
	m, e, b := message{}, entry{}, batch{PublishBatchRequestEntries: []entry{{Id: aws.String("1")}}}
	for what, err := range map[string]error{
		"message": snskey.Message(t.Context(), "receipt", &m, dedup),
		"entry":   snskey.Entry(t.Context(), "receipt", &e, dedup),
		"batch":   snskey.Batch(t.Context(), "receipt", &b, dedup),
	} {
		if !errors.Is(err, propagate.ErrUnguarded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	same(t, "message", m, message{})
	same(t, "entry", e, entry{})
	same(t, "batch", b, batch{PublishBatchRequestEntries: []entry{{Id: aws.String("1")}}})
}

// keysOf returns the keys that a consumer finds, whatever the capitalization of the attribute's
// name.
func keysOf(attributes map[string]value) (keys []string) {
	for name, v := range attributes {
		if strings.EqualFold(name, lambdaidem.MessageKey) {
			keys = append(keys, aws.ToString(v.StringValue))
		}
	}
	return keys
}

// If a message can't have the key, the function returns an error and leaves the message
// unchanged.
func TestV4_WhatCantHaveTheKey(t *testing.T) {
	text := func(kind, s string) value { return value{DataType: aws.String(kind), StringValue: aws.String(s)} }
	many := func(n int) map[string]value {
		m := make(map[string]value)
		for i := range n {
			m[fmt.Sprint("a", i)] = text("String", "x")
		}
		return m
	}
	with := func(m map[string]value, v value) map[string]value { m["x-idempotency-key"] = v; return m }
	for name, c := range map[string]struct {
		message
		key  string
		want string
		is   error
	}{
		"nine attributes":            {message{MessageAttributes: many(9)}, "k", "", nil},
		"ten attributes":             {message{MessageAttributes: many(10)}, "k", "10 attributes already", nil},
		"the key is one of the ten":  {message{MessageAttributes: with(many(9), text("String", "k"))}, "k", "", nil},
		"another key":                {message{MessageAttributes: with(many(0), text("String", "other"))}, "k", "message attribute", propagate.ErrOtherKey},
		"the same text as a number":  {message{MessageAttributes: with(many(0), text("Number", "1"))}, "1", "message attribute", propagate.ErrOtherKey},
		"no text":                    {message{MessageAttributes: with(many(0), value{})}, "k", "message attribute", propagate.ErrOtherKey},
		"the key, capitalized":       {message{MessageAttributes: map[string]value{"X-Idempotency-Key": text("String", "k")}}, "k", "", nil},
		"another, capitalized":       {message{MessageAttributes: map[string]value{"X-Idempotency-Key": text("String", "other")}}, "k", "the message attribute X-Idempotency-Key; leave it out", propagate.ErrOtherKey},
		"the key in two spellings":   {message{MessageAttributes: with(map[string]value{"X-Idempotency-Key": text("String", "k")}, text("String", "k"))}, "k", "2 times", propagate.ErrOtherKey},
		"the same deduplication id":  {message{MessageDeduplicationId: aws.String("k")}, "k", "", nil},
		"another deduplication id":   {message{MessageDeduplicationId: aws.String("j")}, "k", "MessageDeduplicationId", propagate.ErrOtherKey},
		"an empty deduplication id":  {message{MessageDeduplicationId: aws.String("")}, "k", "MessageDeduplicationId", propagate.ErrOtherKey},
		"a long key":                 {message{}, strings.Repeat("k", 128), "", nil},
		"too long to deduplicate by": {message{}, strings.Repeat("k", 129), "129 characters", nil},
		"a space":                    {message{}, "a b", "space", nil},
		"punctuation":                {message{}, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "", nil},
		"empty":                      {message{}, "", "empty", nil},
		"not printable":              {message{}, "a\n", "printable", nil},
		"a structure of protocols":   {message{MessageStructure: aws.String("json")}, "k", "MessageStructure", nil},
		"another structure":          {message{MessageStructure: aws.String("")}, "k", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.message
			err := snskey.MessageWithKey(c.key, &m, dedup)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Fatal(err)
			}
			if err != nil {
				same(t, "message", m, c.message)
				return
			}
			if got := keysOf(m.MessageAttributes); !slices.Equal(got, []string{c.key}) || aws.ToString(m.MessageDeduplicationId) != c.key {
				t.Errorf("the keys are %q: %+v", got, m)
			}
		})
	}
}

// The functions never write to the caller's map, which several messages may share.
func TestV4_TheCallersMapIsNotWrittenTo(t *testing.T) {
	shared := map[string]value{"kind": {DataType: aws.String("String"), StringValue: aws.String("receipt")}}
	for _, key := range []string{"one", "two"} {
		e := entry{MessageAttributes: shared}
		if err := snskey.EntryWithKey(key, &e); err != nil {
			t.Fatal(err)
		}
		if len(shared) != 1 || len(e.MessageAttributes) != 2 || aws.ToString(e.MessageAttributes["x-idempotency-key"].StringValue) != key || e.MessageDeduplicationId != nil {
			t.Errorf("%v, %+v", shared, e)
		}
	}
}

// Each entry of a batch has its own key, derived from its Id, which is the same in every
// attempt.
func TestV4_EachEntryOfABatchHasItsOwnKey(t *testing.T) {
	seen := make(map[string]int)
	guarded(t, "k", func(ctx context.Context) {
		in := []entry{{Id: aws.String("a")}, {Id: aws.String("b")}}
		for _, name := range []string{"receipts", "invoices"} {
			b := batch{PublishBatchRequestEntries: in}
			if err := snskey.Batch(ctx, name, &b, dedup); err != nil {
				t.Fatal(err)
			}
			for _, e := range b.PublishBatchRequestEntries {
				key := aws.ToString(e.MessageAttributes["x-idempotency-key"].StringValue)
				if key != lambdaidem.DownstreamKey(ctx, name+"#"+*e.Id) || aws.ToString(e.MessageDeduplicationId) != key {
					t.Errorf("%s has %s", *e.Id, key)
				}
				seen[key]++
			}
		}
		same(t, "the caller's entries", in, []entry{{Id: aws.String("a")}, {Id: aws.String("b")}})
	})
	if len(seen) != 4 {
		t.Errorf("4 entries had %d keys", len(seen))
	}
}

// If one entry can't have its key, the whole batch is unchanged.
func TestV4_ABatchIsAllOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		second entry
		want   string
	}{
		"no Id":       {entry{}, "no Id"},
		"the same Id": {entry{Id: aws.String("a")}, "two entries have the Id a"},
		"structured":  {entry{Id: aws.String("b"), MessageStructure: aws.String("json")}, `entry b: snskey: MessageStructure is "json"`},
		"another key": {entry{Id: aws.String("b"), MessageDeduplicationId: aws.String("x")}, "entry b: propagate: there is another key already: MessageDeduplicationId"},
	} {
		guarded(t, name, func(ctx context.Context) {
			in := []entry{{Id: aws.String("a")}, c.second}
			b := batch{PublishBatchRequestEntries: in}
			if err := snskey.Batch(ctx, "receipts", &b, dedup); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			same(t, name, b, batch{PublishBatchRequestEntries: []entry{{Id: aws.String("a")}, c.second}})
		})
	}
}

// SNS drops the attributes of every message, and of every entry of a batch, whose
// MessageStructure is "json". The functions return an error rather than lose the key.
func TestV4_AnEntryOfStructuredMessagesIsRefused(t *testing.T) {
	e := entry{Id: aws.String("1"), MessageStructure: aws.String("json"), Message: aws.String(`{"default":"x"}`)}
	was := e
	guarded(t, "k", func(ctx context.Context) {
		for name, err := range map[string]error{"Entry": snskey.Entry(ctx, "receipt", &e), "EntryWithKey": snskey.EntryWithKey("k", &e)} {
			if err == nil || !strings.Contains(err.Error(), "MessageStructure") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	same(t, "entry", e, was)
}
