package dynamostore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var twoSteps = lambdaidem.Steps{"charge": []byte(`{"id":"ch_1"}`), "mail": []byte(`"sent"`)}

var writeGolden = flag.Bool("golden", false, "write the items in testdata/items anew")

// withSteps returns an item with steps. Its times are fixed.
func withSteps() *item {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	itm := claimed(lambdaidem.Claim{
		ID: "lambdaidem#YWJj", Scope: "shop/POST /payments", Fingerprint: "f1", Token: "token-1",
		Now: at, LeaseEnd: at.Add(30 * time.Second), Expires: at.Add(time.Hour).Truncate(time.Second),
	})
	itm.setSteps(encodedSteps, lambdaidem.Steps{"charge": []byte(`{"id":"ch_1","note":"grüße"}`), "mail": []byte(`"sent"`), "raw": {0xff, 0x00}, "empty": {}})
	return itm
}

func released(itm *item) *item {
	itm.release(time.Date(2026, 1, 3, 3, 4, 6, 0, time.UTC), "", "")
	return itm
}

// Items with steps have the same form as ever, and are read as the same records.
func TestE5_GoldenItemsWithSteps(t *testing.T) {
	for name, itm := range map[string]*item{"steps-in-progress": withSteps(), "steps-released": released(withSteps())} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "items", name+".json")
			attrs := standardLayout.attributes(itm)
			if *writeGolden {
				if err := os.WriteFile(path, wireJSON(t, attrs), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), string(wireJSON(t, attrs))); diff != "" {
				t.Errorf("golden - written +:\n%s", diff)
			}
			client, _ := inMemory(find(string(golden)))
			got, err := New(client, "test").Get(t.Context(), itm.ID, fromMillis(itm.StartedAt))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(itm.record(), got); diff != "" || len(got.Steps) != 4 {
				t.Errorf("record - read +:\n%s", diff)
			}
		})
	}
}

// wireJSON returns an item in DynamoDB's JSON.
func wireJSON(t *testing.T, attrs attributes) []byte {
	t.Helper()
	text, err := json.MarshalIndent(plain(t, &types.AttributeValueMemberM{Value: attrs})["M"], "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func plain(t *testing.T, v types.AttributeValue) map[string]any {
	t.Helper()
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberM:
		m := map[string]any{}
		for name, member := range v.Value {
			m[name] = plain(t, member)
		}
		return map[string]any{"M": m}
	}
	t.Fatalf("a %T in an item", v)
	return nil
}

// refusedBefore reports whether the version before steps refuses an item: it refused any encoding,
// and knew the attributes other than steps.
func refusedBefore(attrs attributes) bool {
	_, encoded := attrs[attrEncoding]
	return encoded
}

// A version that knows no steps must not run a record again without them. Only the encoding makes
// it refuse the item, so the encoding must be there exactly while the item has steps.
func TestE5_AVersionBeforeStepsRefusesTheItem(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	raw := func() attributes {
		t.Helper()
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: s.key(claim.ID), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Item
	}
	expect := func(what string, refused bool, _ lambdaidem.Record, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		attrs := raw()
		_, has := attrs[attrSteps]
		if refusedBefore(attrs) != refused || has != refused {
			t.Errorf("%s: the version before refuses it: %t, it has steps: %t; want %t: %v", what, refusedBefore(attrs), has, refused, plain(t, &types.AttributeValueMemberM{Value: attrs}))
		}
	}
	rec, err := s.Acquire(t.Context(), claim)
	expect("the lock", false, rec, err)
	rec, err = s.SaveSteps(t.Context(), lease, twoSteps, now)
	expect("the save", true, rec, err)
	rec, err = s.Release(t.Context(), lease, now)
	expect("the release", true, rec, err)
	next, nextLease := claimBy("token-2"), lease
	next.Over, nextLease.Token = &rec, "token-2"
	rec, err = s.Acquire(t.Context(), next)
	expect("the takeover", true, rec, err)
	if len(rec.Steps) != 2 {
		t.Errorf("the takeover's record has the steps %v", rec.Steps)
	}
	rec, err = s.Complete(t.Context(), nextLease, result)
	expect("the completion", false, rec, err)

	attrs := standardLayout.attributes(withSteps())
	delete(attrs, attrEncoding)
	if refusedBefore(attrs) {
		t.Error("it refuses the item without its encoding too: this test proves nothing")
	}
}

// An item has steps and their encoding, or neither. A completed item has neither.
func TestE5_StepsStandWithTheirEncoding(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(attributes)
		want   string
	}{
		"no encoding":        {func(a attributes) { delete(a, attrEncoding) }, "no encoding"},
		"another encoding":   {func(a attributes) { a[attrEncoding] = str("gzip") }, `"gzip"`},
		"no steps":           {func(a attributes) { delete(a, attrSteps) }, `"steps"`},
		"empty steps":        {func(a attributes) { a[attrSteps] = &types.AttributeValueMemberM{} }, `"steps"`},
		"steps as text":      {func(a attributes) { a[attrSteps] = str("charge") }, "a map"},
		"a step as a number": {func(a attributes) { a[attrSteps] = &types.AttributeValueMemberM{Value: attributes{"a": number(1)}} }, "a map of strings"},
		"completed": {func(a attributes) {
			a[attrStatus], a[attrOutcome] = str(lambdaidem.Completed), str(lambdaidem.OutcomeSucceeded)
		}, `"steps"`},
	} {
		for state, itm := range map[string]*item{"in progress": withSteps(), "released": released(withSteps())} {
			attrs := standardLayout.attributes(itm)
			if _, err := standardLayout.parse(attrs); err != nil {
				t.Fatalf("the item is refused before it is damaged: %v", err)
			}
			c.damage(attrs)
			if _, err := standardLayout.parse(attrs); !isForeign(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: error is %v; want a foreignItemError with %s", name, state, err, c.want)
			}
		}
	}
	// A version that knows no steps completed the record and left the attribute steps.
	itm := withSteps()
	attrs := standardLayout.attributes(itm)
	itm.finish(result)
	for name, v := range standardLayout.attributes(itm) {
		attrs[name] = v
	}
	delete(attrs, attrEncoding)
	back, err := standardLayout.parse(attrs)
	if err != nil || back.record().Steps != nil || string(back.record().Result.Value) != string(result.Value) {
		t.Errorf("a completed item with left steps is %+v, %v", back, err)
	}
}

// Steps that are too large for an item are refused before anything is sent, and the record does not
// change.
func TestE5_StepsThatAreTooLargeAreNotApplied(t *testing.T) {
	client, table := freshTable(t)
	counted, w := over(client)
	s := New(counted, table, patient)
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	rec, err := s.SaveSteps(t.Context(), lease, lambdaidem.Steps{"charge": []byte(`1`)}, now)
	if err != nil {
		t.Fatal(err)
	}
	trips := w.trips()
	of := func(size int) lambdaidem.Steps {
		return lambdaidem.Steps{"charge": []byte(`1`), "large": bytes.Repeat([]byte("x"), size)}
	}
	_, err = s.SaveSteps(t.Context(), lease, of(400<<10), now)
	wantStoreError(t, err, opSaveSteps, lambdaidem.ReasonTooLarge, true)
	if w.trips() != trips {
		t.Error("something was sent")
	}
	if got, err := s.Get(t.Context(), claim.ID, now); err != nil || cmp.Diff(rec, got) != "" {
		t.Errorf("the record changed: %+v, %v", got, err)
	}
}

// A record with the largest steps still has room for everything that attempts and operators add to
// it later. One more byte of steps is refused.
func TestE5_ARecordWithTheLargestStepsCanBeContinued(t *testing.T) {
	client, table := freshTable(t)
	counted, w := over(client)
	s := New(counted, table, patient)
	longest := claim
	longest.Now, longest.LeaseEnd = now.Add(-time.Hour), now.Add(-time.Minute) // the operator finds a dead lease
	longest.Scope = strings.Repeat("s", 4+5*(3*256+len("%~")+16))
	longest.Invocation, longest.Fingerprint = strings.Repeat("i", 128), strings.Repeat("f", 77)
	if _, err := s.Acquire(t.Context(), longest); err != nil {
		t.Fatal(err)
	}
	empty := &item{ID: claim.ID, Token: claim.Token}
	empty.setSteps(encodedSteps, lambdaidem.Steps{"page": nil})
	steps := func(more int) lambdaidem.Steps {
		return lambdaidem.Steps{"page": bytes.Repeat([]byte("x"), maxStepsSize-s.layout.size(empty)+more)}
	}
	trips := w.trips()
	_, err := s.SaveSteps(t.Context(), lease, steps(1), now)
	wantStoreError(t, err, opSaveSteps, lambdaidem.ReasonTooLarge, true)
	if w.trips() != trips {
		t.Error("something was sent")
	}
	rec, err := s.SaveSteps(t.Context(), lease, steps(0), now)
	if err != nil {
		t.Fatal(err)
	}
	takeOver := func(over lambdaidem.Record) lambdaidem.Record {
		c := longest
		c.Over, c.Bound = &over, lambdaidem.BoundByDownstreamKey
		rec, err := s.Acquire(t.Context(), c)
		if err != nil || !maps.EqualFunc(rec.Steps, steps(0), bytes.Equal) {
			t.Fatalf("a takeover in state %s has %d steps, %v", over.State, len(rec.Steps), err)
		}
		return rec
	}
	operator, err := s.Operator(strings.Repeat("o", MaxOperator), strings.Repeat("r", MaxReason))
	if err != nil {
		t.Fatal(err)
	}
	for range MaxOperations + 1 {
		inspected, err := s.Inspect(t.Context(), rec.ID)
		if err != nil {
			t.Fatal(err)
		}
		if inspected, err = operator.Release(t.Context(), inspected); err != nil {
			t.Fatalf("the operator: %v", err)
		}
		rec = takeOver(inspected.Record)
	}
	failed := lease
	failed.LastFailure, failed.Bound = strings.Repeat("e", 128), lambdaidem.BoundByDownstreamKey
	if rec, err = s.Release(t.Context(), failed, now); err != nil {
		t.Fatalf("the release: %v", err)
	}
	takeOver(rec)
}

// A save whose reply was lost has succeeded. A save that arrives after a later one removes no
// steps.
func TestE5_ALateSaveTakesNothingAway(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	one := lambdaidem.Steps{"charge": twoSteps["charge"]}
	for range 2 { // the second is like a retry of the SDK
		if _, err := s.SaveSteps(t.Context(), lease, one, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.SaveSteps(t.Context(), lease, twoSteps, now); err != nil {
		t.Fatal(err)
	}
	_, err := s.SaveSteps(t.Context(), lease, one, now)
	wantStoreError(t, err, opSaveSteps, lambdaidem.ReasonInvalid, true)
	if !errors.Is(err, errStepsGrow) {
		t.Errorf("the error is %v", err)
	}
	if got, err := s.Get(t.Context(), claim.ID, now); err != nil || cmp.Diff(twoSteps, got.Steps) != "" {
		t.Errorf("the record has %v, %v", got.Steps, err)
	}
}

// A save, and a takeover that returns the steps, are one request each.
func TestE5_StepsCostNoFurtherRequest(t *testing.T) {
	client, table := freshTable(t)
	counted, w := over(client)
	s := New(counted, table, patient)
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveSteps(t.Context(), lease, twoSteps, now); err != nil {
		t.Fatal(err)
	}
	current, err := s.Acquire(t.Context(), claimBy("token-2"))
	if err != nil || cmp.Diff(twoSteps, current.Steps) != "" {
		t.Fatalf("a refused lock shows %+v, %v", current, err)
	}
	next := claimBy("token-2")
	next.Now, next.Over = claim.LeaseEnd, &current
	next.LeaseEnd = next.Now.Add(30 * time.Second)
	got, err := s.Acquire(t.Context(), next)
	if err != nil || cmp.Diff(twoSteps, got.Steps) != "" {
		t.Fatalf("the takeover has %+v, %v", got, err)
	}
	if want := "[PutItem UpdateItem PutItem UpdateItem]"; fmt.Sprint(w.sent) != want {
		t.Errorf("it sent %v; want %s", w.sent, want)
	}
}

// If the reply to a takeover has no valid item, nothing shows which steps there are. The result is
// unknown, and no handler may run.
func TestE5_ATakeoverThatShowsNoItemIsUnknown(t *testing.T) {
	for name, f := range map[string]fault{
		"no item": succeed,
		"damaged": func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			return answer(200, `{"Attributes":{"id":{"S":"idem#test"},"steps":{"S":"charge"}}}`), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := inMemory(f)
			next := claimBy("token-2")
			next.Over = &lambdaidem.Record{State: lambdaidem.Released, Token: claim.Token, Attempt: 1, LeaseEnd: claim.LeaseEnd}
			_, err := New(client, "test").Acquire(t.Context(), next)
			wantStoreError(t, err, opAcquire, lambdaidem.ReasonForeign, false)
		})
	}
}

// On DynamoDB Local, a handler that is released, dies and then completes runs each step once. The
// item keeps its steps until it is completed.
func TestE5_AHandlersStepsRunOnceOnDynamoDB(t *testing.T) {
	client, table := freshTable(t)
	clock := time.Now()
	guard := lambdaidem.New(New(client, table, patient), func(o *lambdaidem.Options) {
		o.Observer, o.Namespace = lambdaidem.Discard, "steps"
		o.Clock = func() time.Time { return clock }
	})
	errReleased := errors.New("released")
	var mu sync.Mutex
	calls, keys := map[string]int{}, map[string]bool{}
	step := func(ctx context.Context, name string) error {
		got, err := lambdaidem.Step(ctx, name, func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[name]++
			return name + " grüße", nil
		})
		if err == nil && got != name+" grüße" {
			return fmt.Errorf("step %s is %q", name, got)
		}
		return err
	}
	run := func(payload int, end error) error {
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "key-1", Payload: payload}, func(ctx context.Context) (int, error) {
			var all errgroup.Group
			for n := range lambdaidem.Attempt(ctx) + 2 { // one more in each attempt
				all.Go(func() error { return step(ctx, fmt.Sprint("step ", n)) })
			}
			keys[lambdaidem.DownstreamKey(ctx, "psp")] = true
			return 1, errors.Join(all.Wait(), end)
		})
		return err
	}
	if err := run(100, errReleased); !errors.Is(err, errReleased) {
		t.Fatal(err)
	}
	if err := run(999, nil); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Fatalf("another payload: %v", err)
	}
	if err := run(100, lambdaidem.Uncertain(errReleased)); !errors.Is(err, errReleased) {
		t.Fatal(err)
	}
	clock = clock.Add(10 * time.Minute) // the lease has ended
	if err := run(100, nil); err != nil {
		t.Fatal(err)
	}
	if err := run(100, errReleased); err != nil { // the answer is replayed
		t.Fatal(err)
	}
	want := map[string]int{"step 0": 1, "step 1": 1, "step 2": 1, "step 3": 1, "step 4": 1}
	if diff := cmp.Diff(want, calls); diff != "" || len(keys) != 1 {
		t.Errorf("the keys were %v; calls, wanted - made +:\n%s", keys, diff)
	}
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table)})
	if err != nil || len(out.Items) != 1 {
		t.Fatalf("%d items, %v", len(out.Items), err)
	}
	for _, name := range []string{attrSteps, attrEncoding} {
		if v, has := out.Items[0][name]; has {
			t.Errorf("the completed item has %s: %v", name, v)
		}
	}
}
