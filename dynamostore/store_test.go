package dynamostore

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The reply to a refused lock has all that the guard needs.
func TestL2_RoundTripsAreTwoForANewRecordAndOneForAnyOther(t *testing.T) {
	client, table := freshTable(t)
	counted, w := over(client)
	s := New(counted, table, patient)
	expect := func(what string, operations ...string) {
		t.Helper()
		if !slices.Equal(w.sent, operations) {
			t.Errorf("%s: sent %v; want %v", what, w.sent, operations)
		}
		w.sent = nil
	}
	must := func(r lambdaidem.Record, err error) lambdaidem.Record {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	must(s.Acquire(t.Context(), claim))
	expect("lock", "PutItem")
	if r := must(s.Acquire(t.Context(), claimBy("token-2"))); r.State != lambdaidem.InProgress || r.Token != claim.Token {
		t.Errorf("conflict shows %+v", r)
	}
	expect("conflict", "PutItem")
	must(s.Complete(t.Context(), lease, result))
	expect("completion", "UpdateItem")
	r := must(s.Acquire(t.Context(), claimBy("token-3")))
	if r.Fingerprint != claim.Fingerprint || !bytes.Equal(r.Result.Value, result.Value) {
		t.Errorf("replay or mismatch shows %+v", r)
	}
	expect("replay or mismatch", "PutItem")
	if diff := cmp.Diff(r, must(s.Get(t.Context(), claim.ID, now))); diff != "" {
		t.Errorf("a refusal shows another record than Get:\n%s", diff)
	}
	expect("get", "GetItem")
}

// The record that a method returns without another read is the same as a read would return.
func TestL2_ReturnedRecordsEqualTheStoredOnes(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	for name, res := range map[string]lambdaidem.Result{
		"text":    result,
		"binary":  withValue([]byte{0xff, 0x00, 0xfe}),
		"empty":   withValue([]byte{}),
		"nothing": withValue(nil),
		"failure": {Outcome: lambdaidem.OutcomeFailed, At: result.At, Expires: result.Expires, Failure: &lambdaidem.Failure{
			Code: "card\xff", Type: "Card\xff", Message: "the card \xff expired", Status: 402,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, l := claim, lease
			c.ID, l.ID = name, name
			c.LeaseEnd = c.LeaseEnd.Add(123456 * time.Nanosecond)
			c.Scope, c.Fingerprint = c.Scope+"\xff", c.Fingerprint+"\xff"
			same := func(got lambdaidem.Record, err error) lambdaidem.Record {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				stored, err := s.Get(t.Context(), name, now)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(stored, got); diff != "" {
					t.Errorf("stored - returned +:\n%s", diff)
				}
				return got
			}
			same(s.Acquire(t.Context(), c))
			same(s.SaveSteps(t.Context(), l, twoSteps, now))
			released := same(s.Release(t.Context(), l, now))
			c.Token, l.Token, c.Over = "token-2", "token-2", &released
			same(s.Acquire(t.Context(), c))
			same(s.Complete(t.Context(), l, res))
		})
	}
}

// The reply to a completion does not contain the answer: it has the item as it was before.
func TestL2_ACompletionDoesNotBringItsAnswerBack(t *testing.T) {
	client, table := freshTable(t)
	if _, err := New(client, table, patient).Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	var back []byte
	faulty, _ := over(client, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		resp, err := next.Do(r)
		if err != nil {
			return nil, err
		}
		back, err = io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(back))
		return resp, err
	})
	got, err := New(faulty, table, patient).Complete(t.Context(), lease, withValue([]byte("the-answer")))
	if err != nil || string(got.Result.Value) != "the-answer" || got.Fingerprint != claim.Fingerprint {
		t.Errorf("completed: %+v, %v", got, err)
	}
	if bytes.Contains(back, []byte("the-answer")) {
		t.Errorf("DynamoDB answered %s", back)
	}
}

// An empty binary answer, which another version may have written, is an answer.
func TestR1_EmptyBinaryDataIsEmptyNotAbsent(t *testing.T) {
	itm := completedItem()
	itm.Data = nil
	attrs := strings.TrimSuffix(itemJSON(itm), "}") + `,"data":{"B":""}}`
	client, _ := inMemory(find(attrs))
	got, err := New(client, "test").Get(t.Context(), claim.ID, now)
	if err != nil || got.Result.Value == nil || len(got.Result.Value) != 0 {
		t.Errorf("%#v, %v; want a value of no bytes", got.Result.Value, err)
	}
}

// A call that waits for a completion must see it. DynamoDB's reads are eventually consistent by
// default.
func TestL8_GetReadsConsistently(t *testing.T) {
	var body []byte
	client, _ := inMemory(func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
		var err error
		body, err = io.ReadAll(r.Body)
		return answer(200, `{}`), err
	})
	if _, err := New(client, "test").Get(t.Context(), claim.ID, now); err != nil {
		t.Fatal(err)
	}
	var sent struct{ ConsistentRead bool }
	if err := json.Unmarshal(body, &sent); err != nil || !sent.ConsistentRead {
		t.Errorf("sent %s; want ConsistentRead", body)
	}
}

func failedWith(message string) lambdaidem.Result {
	r := result
	r.Outcome, r.Value, r.Failure = lambdaidem.OutcomeFailed, nil, &lambdaidem.Failure{Code: "c", Type: "T", Message: message, Status: 500}
	return r
}

func withValue(v []byte) lambdaidem.Result {
	r := result
	r.Value = v
	return r
}

// Every method refuses an item that another tool wrote under a record's id. The item never changes,
// even if it has expired.
func TestD4_AForeignItemIsRefusedAndLeftAlone(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	const farFuture = 1 << 33 // seconds; DynamoDB Local would delete an item that has expired by its own clock
	powertools := attributes{
		"id": str(claim.ID), "status": str("COMPLETED"), "expiration": number(farFuture), "data": str(`{"paid":true}`),
	}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: powertools})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{now, time.Unix(farFuture+1, 0)} { // live, then expired
		c := claim
		c.Now, c.LeaseEnd, c.Expires = at, at.Add(time.Minute), at.Add(time.Hour)
		_, err = s.Acquire(t.Context(), c)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonForeign, true)
		c.Over = &lambdaidem.Record{State: lambdaidem.Released, Token: "seen", LeaseEnd: at}
		_, err = s.Acquire(t.Context(), c)
		wantStoreError(t, err, opAcquire, lambdaidem.ReasonForeign, true)
		_, err = s.Complete(t.Context(), lease, result)
		wantStoreError(t, err, opComplete, lambdaidem.ReasonForeign, true)
		_, err = s.Release(t.Context(), lease, at)
		wantStoreError(t, err, opRelease, lambdaidem.ReasonForeign, true)
		_, err = s.Get(t.Context(), claim.ID, at)
		wantStoreError(t, err, opGet, lambdaidem.ReasonForeign, true)
		if !strings.Contains(err.Error(), "data, expiration, id, status") {
			t.Errorf("error %q doesn't say what the item has", err)
		}
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: s.key(claim.ID), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(powertools, out.Item, avOptions); diff != "" {
		t.Errorf("the foreign item changed:\n%s", diff)
	}
}

// A result that no item can hold is refused before anything is sent. If only DynamoDB can detect
// that it is too large, DynamoDB refuses it, and it was certainly not applied.
func TestX4_AResultThatIsTooLargeIsNotApplied(t *testing.T) {
	const limit = 400 << 10 // the maximum size of an item, in bytes
	client, table := freshTable(t)
	counted, w := over(client)
	s := New(counted, table, patient)
	r, err := s.Acquire(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	trips := w.trips()
	const most = 9 << 20 // the default of MaxAnswer, in bytes
	_, err = s.Complete(t.Context(), lease, withValue(bytes.Repeat([]byte("x"), most+1)))
	wantStoreError(t, err, opComplete, lambdaidem.ReasonTooLarge, true)
	_, err = s.Complete(t.Context(), lease, failedWith(strings.Repeat("x", most)))
	wantStoreError(t, err, opComplete, lambdaidem.ReasonTooLarge, true)
	if w.trips() != trips {
		t.Error("something was sent")
	}
	if got, err := s.Get(t.Context(), claim.ID, now); err != nil || cmp.Diff(r, got) != "" {
		t.Errorf("the record changed: %+v, %v", got, err)
	}
	if _, err = s.Complete(t.Context(), lease, withValue(bytes.Repeat([]byte("x"), most))); err != nil {
		t.Errorf("a result that fits is refused: %v", err)
	}

	// The scope takes nearly all of the item's space, so even an answer within the limit does not
	// fit.
	wide := claim
	wide.ID, wide.Scope = "wide", strings.Repeat("s", limit-1000)
	if _, err = s.Acquire(t.Context(), wide); err != nil {
		t.Fatal(err)
	}
	_, err = s.Complete(t.Context(), lambdaidem.Lease{ID: wide.ID, Token: wide.Token}, withValue([]byte(noise(1500))))
	wantStoreError(t, err, opComplete, lambdaidem.ReasonTooLarge, true)

	large := claim
	large.ID, large.Scope = "large", strings.Repeat("s", limit)
	trips = w.trips()
	_, err = s.Acquire(t.Context(), large)
	wantStoreError(t, err, opAcquire, lambdaidem.ReasonTooLarge, true)
	if w.trips() != trips {
		t.Error("a claim that no item can hold was sent")
	}
}

// Every condition compares the fencing token.
func TestL3_AReplacedTokenWritesNothing(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	first, err := s.Acquire(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	next := claimBy("token-2")
	next.Now = claim.LeaseEnd.Add(time.Second)
	next.LeaseEnd = next.Now.Add(30 * time.Second)
	next.Over = &first
	second, err := s.Acquire(t.Context(), next)
	if err != nil || second.Attempt != 2 {
		t.Fatalf("takeover: %+v, %v", second, err)
	}
	for name, verb := range map[string]func() (lambdaidem.Record, error){
		"Complete": func() (lambdaidem.Record, error) { return s.Complete(t.Context(), lease, result) },
		"Release":  func() (lambdaidem.Record, error) { return s.Release(t.Context(), lease, next.Now) },
		"SaveSteps": func() (lambdaidem.Record, error) {
			return s.SaveSteps(t.Context(), lease, twoSteps, next.Now)
		},
	} {
		got, err := verb()
		if !errors.Is(err, lambdaidem.ErrLeaseLost) {
			t.Errorf("%s: error is %v; want ErrLeaseLost", name, err)
		}
		if diff := cmp.Diff(second, got); diff != "" {
			t.Errorf("%s: record is not the second attempt's:\n%s", name, diff)
		}
	}
}

// A takeover replaces everything of the old attempt except the steps, which belong to the record.
func TestL6_ATakeoverLeavesNothingOfTheOldAttemptButItsSteps(t *testing.T) {
	client, table := freshTable(t)
	s := New(client, table, patient)
	oldItm := claimed(claim)
	oldItm.finish(result)
	oldItm.Status = lambdaidem.Released
	oldItm.setSteps(encodedSteps, lambdaidem.Steps{"charge": []byte(`"kept"`)})
	attrs := s.layout.attributes(oldItm)
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: attrs})
	if err != nil {
		t.Fatal(err)
	}
	next := claimBy("token-2")
	next.Over = &lambdaidem.Record{State: lambdaidem.Released, Token: claim.Token, Attempt: 1, LeaseEnd: claim.LeaseEnd}
	next.Expires, next.Fingerprint = time.Time{}, "f2"
	if _, err := s.Acquire(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	want := s.layout.attributes(claimed(next))
	want[attrSteps], want[attrEncoding] = attrs[attrSteps], str(encodedSteps)
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: s.key(claim.ID), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.Item, avOptions); diff != "" {
		t.Error(diff)
	}
}

// If the reply to an update has no item, the caller gets no record. The result is then unknown, and
// not a success.
func TestX8_AnAnswerWithoutAttributesIsUnknown(t *testing.T) {
	client, _ := inMemory(succeed)
	_, err := New(client, "test").Complete(t.Context(), lease, result)
	wantStoreError(t, err, opComplete, lambdaidem.ReasonForeign, false)
}
