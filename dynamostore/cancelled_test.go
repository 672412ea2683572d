package dynamostore

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// reason is one CancellationReason of a cancelled transaction, in DynamoDB's JSON.
type reason struct {
	Code    string
	Message string                       `json:",omitempty"`
	Item    map[string]map[string]string `json:",omitempty"`
}

// cancelled returns a fault that responds that DynamoDB cancelled the transaction. It takes one
// reason for each action, in order.
func cancelled(reasons ...reason) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		body, err := json.Marshal(map[string]any{
			"__type":              "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
			"Message":             "Transaction cancelled, please refer cancellation reasons for specific reasons",
			"CancellationReasons": reasons,
		})
		if err != nil {
			return nil, err
		}
		return answer(400, string(body)), nil
	}
}

func cancelledBy(codes ...string) fault {
	reasons := make([]reason, len(codes))
	for i, c := range codes {
		reasons[i] = reason{Code: c}
	}
	return cancelled(reasons...)
}

// apiError returns a fault that responds with an error of the given code.
func apiError(code string) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		return answer(400, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"as it was asked for"}`), nil
	}
}

// The record is the first action of the transaction, followed by debit and credit. After a
// temporary failure, the guard sends the transaction again, and the database then commits it.
func TestE2_ReasonsAreReadInTheirOrder(t *testing.T) {
	const none, condition, conflict = "None", "ConditionalCheckFailed", "TransactionConflict"
	for name, c := range map[string]struct {
		answer fault
		want   error // nil: the transaction is sent again and committed
		write  string
	}{
		"conflict on the record":                       {cancelledBy(conflict, none, none), nil, ""},
		"conflict on a write":                          {cancelledBy(none, none, conflict), nil, ""},
		"throttled":                                    {cancelledBy(none, "ThrottlingError", none), nil, ""},
		"provisioned throughput":                       {cancelledBy("ProvisionedThroughputExceeded", none, none), nil, ""},
		"condition of the first":                       {cancelledBy(none, condition, none), lambdaidem.ErrConditionFailed, "debit"},
		"condition of the second":                      {cancelledBy(none, none, condition), lambdaidem.ErrConditionFailed, "credit"},
		"condition before conflict of another":         {cancelledBy(none, conflict, condition), lambdaidem.ErrConditionFailed, "credit"},
		"the record's conflict before a condition":     {cancelledBy(conflict, condition, none), nil, ""},
		"the record's throttling before a condition":   {cancelledBy("ThrottlingError", condition, none), nil, ""},
		"the record's condition before a write's":      {cancelledBy(condition, condition, none), lambdaidem.ErrInProgress, ""},
		"a write that is invalid":                      {cancelledBy(none, none, "ValidationError"), lambdaidem.ErrWriteInvalid, "credit"},
		"a collection that is too large":               {cancelledBy(none, "ItemCollectionSizeLimitExceeded", none), lambdaidem.ErrWriteInvalid, "debit"},
		"a reason that is new":                         {cancelledBy(none, "Whatever", none), lambdaidem.ErrWriteInvalid, "debit"},
		"in progress":                                  {apiError("TransactionInProgressException"), nil, ""},
		"conflict without a cancellation":              {apiError("TransactionConflictException"), nil, ""},
		"throttled as a whole":                         {apiError("ProvisionedThroughputExceededException"), nil, ""},
		"invalid as a whole":                           {apiError("ValidationException"), lambdaidem.ErrWriteInvalid, ""},
		"a table that may not be written":              {apiError("AccessDeniedException"), lambdaidem.ErrWriteInvalid, ""},
		"credentials that have expired":                {apiError("ExpiredTokenException"), lambdaidem.ErrOutcomeUnknown, ""},
		"reasons for another number of writes: unread": {cancelledBy(condition, condition), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			b.wire.after("TransactWriteItems", c.answer)
			got, err := b.do(t.Context(), "k", well)
			if c.want == nil {
				if err != nil || got != "moved" {
					t.Errorf("got %q, %v", got, err)
				}
				b.wantBalance(t, "alice", 70)
				return
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v; want %v", err, c.want)
			}
			failed, wrong := (*ConditionFailed)(nil), (*WriteError)(nil)
			switch {
			case errors.As(err, &failed) && failed.Write != c.write, errors.As(err, &wrong) && wrong.Write != c.write:
				t.Errorf("%v; want it of %q", err, c.write)
			}
			b.wantBalance(t, "alice", 100)
		})
	}
}

// If the answer makes the record too large, the record is completed without it, and the writes are
// made.
func TestX4_TransactionLeavesOutAnAnswerThatIsTooLarge(t *testing.T) {
	b := openBank(t)
	b.wire.after("TransactWriteItems", cancelled(
		reason{Code: "ValidationError", Message: "Item size to update has exceeded the maximum allowed size"}, reason{Code: "None"}, reason{Code: "None"}))
	if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := b.do(t.Context(), "k", well); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
		t.Errorf("got %v", err)
	}
	b.wantBalance(t, "alice", 70)
	b.wantRuns(t, 1)
}

// If the record in the refusal has expired by now, Commit returns no record.
func TestL7_TransactionOverAnExpiredRecordHasNone(t *testing.T) {
	gone := reason{Code: "ConditionalCheckFailed", Item: map[string]map[string]string{
		"id": {"S": lease.ID}, "status": {"S": "RELEASED"}, "token": {"S": "another"}, "attempt": {"N": "1"}, "in_progress_expiration": {"N": "1"}, "expiration": {"N": "1"},
	}}
	client, _ := inMemory(cancelled(gone, reason{Code: "None"}))
	rec, err := alone(New(client, "records", quick)).Commit(t.Context(), &lambdaidem.Completion{Lease: lease, Result: result})
	if !errors.Is(err, lambdaidem.ErrLeaseLost) || rec.State != lambdaidem.Absent {
		t.Errorf("%+v, %v", rec, err)
	}
}

// The reply to the first request is lost. The second request is refused, because the first one has
// completed the record, so the commit has succeeded.
func TestE2_OwnCompletionComesFirst(t *testing.T) {
	b := openBank(t)
	b.wire.after("TransactWriteItems", loseReply, otherToken)
	if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
		t.Errorf("got %q, %v", got, err)
	}
	b.wantBalance(t, "alice", 70)
	if bodies := b.wire.bodies("TransactWriteItems"); len(bodies) != 2 {
		t.Errorf("sent %d times", len(bodies))
	}
}

// The first request of a transaction is delayed, and the second is rejected. Before the guard
// stores or releases the outcome of the rejection, the first request arrives and is applied. Every
// caller must then get the answer of that transaction.
func TestE2_LateTransactionIsTheAnswer(t *testing.T) {
	for name, verdict := range map[string]error{
		"stored":   lambdaidem.Reject(402, "insufficient_funds", ""),
		"released": lambdaidem.Retryable(errors.New("later")),
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			var late *http.Request
			b.wire.after("TransactWriteItems",
				func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
					late = r.Clone(context.WithoutCancel(r.Context()))
					setBody(late, bodyOf(r))
					return loseRequest(r, next)
				},
				cancelledBy("None", "ConditionalCheckFailed", "None"))
			arrive := func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
				if err := deliver(late, next); err != nil {
					t.Error(err)
				}
				return next.Do(r)
			}
			b.wire.after("UpdateItem", arrive) // sent for the completion or the release
			for i := range 2 {
				got, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
					b.runs.Add(1)
					b.move(ctx).Else(verdict)
					return "moved", nil
				})
				if err != nil || got != "moved" {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
			}
			b.wantBalance(t, "alice", 70)
			b.wantRuns(t, 1)
		})
	}
}

// A transaction without a record may have been applied, so a later refusal must not count as a
// rejection.
func TestE1_UnguardedTransactionThatMayHaveHappenedIsUnknown(t *testing.T) {
	b := openBank(t)
	b.wire.after("TransactWriteItems", loseReply, cancelledBy("ConditionalCheckFailed", "None"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	skip := lambdaidem.Call{Operation: "transfer", Skip: true}
	got, err := lambdaidem.Do(ctx, b.guard, skip, func(ctx context.Context) (string, error) {
		b.move(ctx).Else(lambdaidem.Reject(402, "insufficient_funds", ""))
		return "moved", nil
	})
	if err != nil || got != "moved" { // the third request has the same token, so the database recognizes it
		t.Errorf("got %q, %v", got, err)
	}
	b.wantBalance(t, "alice", 70)
}

// TransactionInProgressException and IdempotentParameterMismatchException mean that an earlier
// request of the transaction may still be applied.
func TestX8_TransactionInProgressIsNoRefusal(t *testing.T) {
	for _, code := range []string{"TransactionInProgressException", "IdempotentParameterMismatchException"} {
		b := openBank(t)
		b.wire.after("TransactWriteItems", apiError(code), apiError(code), apiError(code), apiError(code))
		tx := b.store.Begin(strings.NewReader(strings.Repeat("r", 64)))
		_, err := tx.Commit(t.Context(), &lambdaidem.Completion{Lease: lease, Result: result})
		if failure := (*lambdaidem.StoreError)(nil); !errors.As(err, &failure) || failure.NotApplied {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// alone returns a transaction with one write and no record.
func alone(s *Store) lambdaidem.Tx {
	tx := s.Begin(strings.NewReader(strings.Repeat("r", 64)))
	tx.(*transaction).enlisted.PutValue("payment", "payments", account{"p", 1})
	tx.Seal(lambdaidem.OutcomeSucceeded)
	return tx
}

// DynamoDB forgets the token of a transaction after 10 minutes, and would then apply the
// transaction again. So a transaction without a record is not sent again after that time. A
// transaction with a record can be sent again at any time, because its condition on the record
// fails.
func TestE1_TransactionWithoutARecordIsNotSentWhenItsTokenIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		completion lambdaidem.Completion
		sent       int // the number of requests that two calls of Commit send
	}{
		"alone":         {lambdaidem.Completion{Alone: true}, 1},
		"with a record": {lambdaidem.Completion{Lease: lease, Result: result}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, w := inMemory(slices.Repeat([]fault{loseRequest}, 10)...)
				s := New(client, "records", quick, func(o *Options) { o.Attempts = 1 })
				tx := alone(s)
				for range 2 {
					_, err := tx.Commit(t.Context(), &c.completion)
					if failure := (*lambdaidem.StoreError)(nil); !errors.As(err, &failure) || failure.NotApplied {
						t.Errorf("%v; want one that may have been applied", err)
					}
					time.Sleep(9*time.Minute + time.Second)
				}
				if w.trips() != c.sent {
					t.Errorf("it was sent %d times; want %d", w.trips(), c.sent)
				}
			})
		})
	}
}

// If a condition fails after a request was lost, that request may have been applied and may be the
// cause. Without a record nothing shows which, so the error is not a rejection.
func TestE1_UnguardedConditionAfterALostRequestIsUnknown(t *testing.T) {
	client, _ := inMemory(loseRequest, cancelledBy("ConditionalCheckFailed"))
	_, err := alone(New(client, "records", quick)).Commit(t.Context(), &lambdaidem.Completion{Alone: true})
	failure, rejected := (*lambdaidem.StoreError)(nil), (*lambdaidem.Rejected)(nil)
	if !errors.As(err, &failure) || failure.NotApplied || errors.As(err, &rejected) {
		t.Errorf("the error is %v; want a StoreError that may have been applied", err)
	}
}

// A first request may have been applied. Whatever error a later call gets, the transaction remains
// unknown, until a reply shows the record.
func TestX8_TransactionIsJudgedOverEveryCall(t *testing.T) {
	one := func(o *Options) { o.Attempts = 1 }
	completed := reason{Code: "ConditionalCheckFailed", Item: map[string]map[string]string{
		"id": {"S": lease.ID}, "status": {"S": "COMPLETED"}, "token": {"S": lease.Token}, "attempt": {"N": "1"}, "in_progress_expiration": {"N": "4102444800000"},
		"expiration": {"N": "4102444800"}, "outcome": {"S": "succeeded"}, "data": {"S": "{}"},
	}}
	for name, c := range map[string]struct {
		then fault
		err  error
	}{
		"throttled":            {apiError("ProvisionedThroughputExceededException"), nil},
		"a conflict":           {cancelledBy("TransactionConflict", "None"), nil},
		"invalid as a whole":   {apiError("ValidationException"), nil},
		"no connection":        {refuseConnection, nil},
		"the record tells":     {cancelled(completed, reason{Code: "None"}), nil},
		"another has it":       {cancelledBy("ConditionalCheckFailed", "None"), lambdaidem.ErrLeaseLost},
		"reasons out of order": {cancelledBy("ConditionalCheckFailed"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := inMemory(loseRequest, c.then)
			tx := alone(New(client, "records", quick, one))
			completion := lambdaidem.Completion{Lease: lease, Result: result}
			var rec lambdaidem.Record
			var err error
			for range 2 {
				rec, err = tx.Commit(t.Context(), &completion)
			}
			failure := (*lambdaidem.StoreError)(nil)
			switch {
			case name == "the record tells":
				if err != nil || rec.State != lambdaidem.Completed {
					t.Errorf("%+v, %v", rec, err)
				}
			case c.err != nil:
				if !errors.Is(err, c.err) {
					t.Errorf("%v", err)
				}
			case !errors.As(err, &failure) || failure.NotApplied:
				t.Errorf("%v; want one that may have been applied", err)
			}
		})
	}
}

// A transaction is lost, and then loses a race for the record. The lost request can no longer be
// applied, so the errors of the next transaction are certain.
func TestX8_LostRaceSettlesWhatWasUnknown(t *testing.T) {
	one := func(o *Options) { o.Attempts = 1 }
	another := reason{Code: "ConditionalCheckFailed", Item: map[string]map[string]string{
		"id": {"S": lease.ID}, "status": {"S": "RELEASED"}, "token": {"S": "another"}, "attempt": {"N": "1"},
		"in_progress_expiration": {"N": "4102444800000"}, "expiration": {"N": "4102444800"},
	}}
	claim := lambdaidem.Claim{ID: lease.ID, Token: lease.Token, Now: result.At, LeaseEnd: result.At.Add(time.Minute), Expires: result.Expires}
	first := lambdaidem.Completion{Lease: lease, Result: result, Claim: &claim}
	client, _ := inMemory(loseRequest, cancelled(another, reason{Code: "None"}), cancelledBy("None", "ConditionalCheckFailed"), apiError("AccessDeniedException"))
	tx := alone(New(client, "records", quick, one))

	_, err := tx.Commit(t.Context(), &first)
	if failure := (*lambdaidem.StoreError)(nil); !errors.As(err, &failure) || failure.NotApplied {
		t.Fatalf("the lost one: %v", err)
	}
	rec, err := tx.Commit(t.Context(), &first)
	if !errors.Is(err, lambdaidem.ErrLeaseLost) || rec.State != lambdaidem.Released {
		t.Fatalf("the race: %+v, %v", rec, err)
	}
	over := claim
	over.Over = &rec
	second := lambdaidem.Completion{Lease: lease, Result: result, Claim: &over}
	_, err = tx.Commit(t.Context(), &second)
	if rejected := (*lambdaidem.Rejected)(nil); !errors.As(err, &rejected) || rejected.Unsettled {
		t.Errorf("the condition: %#v; want a rejection that is settled", err)
	}
	_, err = tx.Commit(t.Context(), &second)
	if failure := (*lambdaidem.StoreError)(nil); !errors.As(err, &failure) || !failure.NotApplied {
		t.Errorf("the refusal: %v; want one that surely was not applied", err)
	}
}
