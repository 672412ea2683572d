package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// bank is a guard on a real store, next to a table of accounts.
type bank struct {
	client   *dynamodb.Client // sends without faults
	wire     *faultyWire
	store    *Store
	records  string
	accounts string
	guard    *lambdaidem.Guard
	events   []lambdaidem.Kind
	runs     atomic.Int64
}

type account struct {
	ID      string `dynamodbav:"id"`
	Balance int    `dynamodbav:"balance"`
}

func newBank(t *testing.T, optFns ...func(*lambdaidem.Options)) *bank {
	t.Helper()
	client, records := freshTable(t)
	_, accounts := freshTable(t)
	b := &bank{client: client, records: records, accounts: accounts}
	faulty, wire := over(client)
	b.wire = wire
	b.guardWith(faulty, optFns...)
	return b
}

// guardWith makes the bank's store and guard with the given client.
func (b *bank) guardWith(client *dynamodb.Client, optFns ...func(*lambdaidem.Options)) {
	b.store = New(client, b.records, quick, patient)
	observe := func(o *lambdaidem.Options) {
		o.Namespace = "bank"
		o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) { b.events = append(b.events, e.Kind) })
	}
	b.guard = lambdaidem.New(b.store, append([]func(*lambdaidem.Options){observe}, optFns...)...)
}

// open creates an account.
func (b *bank) open(t *testing.T, id string, balance int) {
	t.Helper()
	item, err := attributevalue.MarshalMap(account{id, balance})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.accounts, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// balance returns the balance of an account, or -1 if there is no such account.
func (b *bank) balance(t *testing.T, id string) int {
	t.Helper()
	out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.accounts, Key: attributes{"id": str(id)}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Item) == 0 {
		return -1
	}
	var a account
	if err := attributevalue.UnmarshalMap(out.Item, &a); err != nil {
		t.Fatal(err)
	}
	return a.Balance
}

func (b *bank) wantBalance(t *testing.T, id string, want int) {
	t.Helper()
	if got := b.balance(t, id); got != want {
		t.Errorf("account %s has %d; want %d", id, got, want)
	}
}

func (b *bank) wantRuns(t *testing.T, want int64) {
	t.Helper()
	if got := b.runs.Load(); got != want {
		t.Errorf("the handler ran %d times; want %d", got, want)
	}
}

// move enlists a transfer of 30 from alice to bob.
func (b *bank) move(ctx context.Context) *Write {
	const amount = 30
	tx := Enlist(ctx)
	debit := tx.UpdateValue("debit", b.accounts, map[string]string{"id": "alice"}, "SET balance = balance - :amount", Args{":amount": amount}).
		If("balance >= :amount", nil)
	tx.UpdateValue("credit", b.accounts, map[string]string{"id": "bob"}, "SET balance = balance + :amount", Args{":amount": amount}).
		If("attribute_exists(id)", nil)
	return debit
}

// do moves 30 under the given key, and returns what the function end returns.
func (b *bank) do(ctx context.Context, key string, end func(ctx context.Context) (string, error)) (string, error) {
	return lambdaidem.Do(ctx, b.guard, lambdaidem.Call{Operation: "transfer", Key: key}, func(ctx context.Context) (string, error) {
		b.runs.Add(1)
		b.move(ctx)
		return end(ctx)
	})
}

func well(context.Context) (string, error) { return "moved", nil }

func openBank(t *testing.T, optFns ...func(*lambdaidem.Options)) *bank {
	t.Helper()
	b := newBank(t, optFns...)
	b.open(t, "alice", 100)
	b.open(t, "bob", 0)
	return b
}

func TestE1_WritesAndCompletionAreOne(t *testing.T) {
	b := openBank(t)
	for range 3 {
		got, err := b.do(t.Context(), "k", well)
		if err != nil || got != "moved" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	b.wantRuns(t, 1)
	b.wantBalance(t, "alice", 70)
	b.wantBalance(t, "bob", 30)
}

// The enlisted writes are dropped unless the outcome is succeeded.
func TestE1_OtherEndingsDropTheWrites(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(context.Context) (string, error)
		runs int64 // after two calls
	}{
		"failed":    {func(context.Context) (string, error) { return "", lambdaidem.Reject(404, "no_such", "") }, 1},
		"permanent": {func(context.Context) (string, error) { return "", lambdaidem.Permanent(errors.New("no")) }, 1},
		"released":  {func(context.Context) (string, error) { return "", errors.New("later") }, 2},
		"uncertain": {func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errors.New("who knows")) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			for range 2 {
				if _, err := b.do(t.Context(), "k", c.end); err == nil {
					t.Error("no error")
				}
			}
			b.wantRuns(t, c.runs)
			b.wantBalance(t, "alice", 100)
			b.wantBalance(t, "bob", 0)
		})
	}
}

func TestE1_FailedAnswerTakesWritesAlongWhenAsked(t *testing.T) {
	b := openBank(t)
	for range 2 {
		_, err := b.do(t.Context(), "k", func(ctx context.Context) (string, error) {
			Enlist(ctx).AlsoWhenFailed()
			return "", lambdaidem.Reject(404, "no_such", "")
		})
		if e := (*lambdaidem.Error)(nil); !errors.As(err, &e) || e.Code != "no_such" {
			t.Errorf("got %v", err)
		}
	}
	b.wantRuns(t, 1)
	b.wantBalance(t, "alice", 70)
}

func TestE1_PanicDropsTheWrites(t *testing.T) {
	b := openBank(t)
	func() {
		defer func() { _ = recover() }()
		_, _ = b.do(t.Context(), "k", func(context.Context) (string, error) { panic("no") })
	}()
	b.wantBalance(t, "alice", 100)
	if _, err := b.do(t.Context(), "k", well); err != nil {
		t.Error(err)
	}
	b.wantBalance(t, "alice", 70)
}

// If the condition of a write without Else fails, the record is released.
func TestE2_FailedConditionReleases(t *testing.T) {
	b := openBank(t)
	b.open(t, "alice", 10)
	_, err := b.do(t.Context(), "k", well)
	failed := (*ConditionFailed)(nil)
	if !errors.Is(err, lambdaidem.ErrConditionFailed) || !errors.As(err, &failed) || failed.Write != "debit" || failed.Absent() {
		t.Fatalf("got %v", err)
	}
	var a account
	if err := failed.Decode(&a); err != nil || a.Balance != 10 {
		t.Errorf("the item is %+v, %v", a, err)
	}
	b.wantBalance(t, "bob", 0)
	b.open(t, "alice", 100)
	if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
		t.Errorf("after the release: %q, %v", got, err)
	}
	b.wantRuns(t, 2)
}

func TestE2_FailedConditionIsUncertainUnderHold(t *testing.T) {
	b := openBank(t, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	b.open(t, "alice", 10)
	for i, want := range []error{lambdaidem.ErrConditionFailed, lambdaidem.ErrInProgress} {
		if _, err := b.do(t.Context(), "k", well); !errors.Is(err, want) {
			t.Errorf("call %d: %v; want %v", i, err, want)
		}
	}
	b.wantRuns(t, 1)
}

// The error of Else counts as if the handler had returned it.
func TestE2_ElseDecides(t *testing.T) {
	for name, c := range map[string]struct {
		verdict error
		want    func(string, error) bool
		runs    int64 // after two calls
	}{
		"stored": {lambdaidem.Reject(402, "insufficient_funds", "No."), func(_ string, err error) bool {
			return errors.Is(err, lambdaidem.Code("insufficient_funds"))
		}, 1},
		"released": {lambdaidem.Retryable(errors.New("later")), func(_ string, err error) bool {
			return errors.Is(err, lambdaidem.ErrRetryable)
		}, 2},
		"answered":         {lambdaidem.Answer("nothing to do"), func(s string, err error) bool { return s == "nothing to do" && err == nil }, 1},
		"answered amiss":   {lambdaidem.Answer(7), func(_ string, err error) bool { return err != nil && strings.Contains(err.Error(), "int") }, 2},
		"of no error":      {nil, func(_ string, err error) bool { return errors.Is(err, lambdaidem.ErrConditionFailed) }, 2},
		"permanent, plain": {lambdaidem.Permanent(errors.New("never")), func(_ string, err error) bool { return errors.Is(err, lambdaidem.ErrPermanent) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			b.open(t, "alice", 10)
			for i := range 2 {
				got, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
					b.runs.Add(1)
					b.move(ctx).Else(c.verdict)
					return "moved", nil
				})
				if !c.want(got, err) {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
			}
			b.wantRuns(t, c.runs)
			b.wantBalance(t, "alice", 10)
			b.wantBalance(t, "bob", 0)
		})
	}
}

func TestE2_AbsentItemIsToldFromAFailedComparison(t *testing.T) {
	for name, c := range map[string]struct {
		alice int // the balance; -1 if there is no account
		want  string
	}{
		"absent": {-1, "no_account"},
		"poor":   {5, "has_5"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t)
			b.open(t, "bob", 0)
			if c.alice >= 0 {
				b.open(t, "alice", c.alice)
			}
			_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
				b.move(ctx).ElseFunc(func(f *ConditionFailed) error {
					if f.Absent() {
						return lambdaidem.Reject(404, "no_account", "")
					}
					var a account
					if err := f.Decode(&a); err != nil {
						return err
					}
					return lambdaidem.Reject(402, lambdaidem.Code(fmt.Sprintf("has_%d", a.Balance)), "")
				})
				return "moved", nil
			})
			if !errors.Is(err, lambdaidem.Code(c.want)) {
				t.Errorf("got %v; want %s", err, c.want)
			}
		})
	}
}

// If several conditions fail, that of the first write decides.
func TestE2_FirstFailedWriteCounts(t *testing.T) {
	b := newBank(t) // there are no accounts
	_, err := b.do(t.Context(), "k", well)
	if failed := (*ConditionFailed)(nil); !errors.As(err, &failed) || failed.Write != "debit" {
		t.Errorf("got %v", err)
	}
}

// An attempt whose token was replaced writes nothing.
func TestE2_LostLeaseWritesNothing(t *testing.T) {
	b := openBank(t)
	id := b.guard.RecordID(lambdaidem.Identity{Operation: "transfer", Key: "k"})
	_, err := b.do(t.Context(), "k", func(ctx context.Context) (string, error) {
		rec, err := b.store.Get(ctx, id, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		over, err := b.store.Acquire(ctx, lambdaidem.Claim{ID: id, Token: "another", Fingerprint: rec.Fingerprint, Now: time.Now(),
			LeaseEnd: time.Now().Add(time.Minute), Expires: time.Now().Add(time.Hour), Over: &rec})
		if err != nil || over.Token != "another" {
			t.Fatalf("%+v, %v", over, err)
		}
		return "moved", nil
	})
	if !errors.Is(err, lambdaidem.ErrInProgress) {
		t.Errorf("got %v; want in progress", err)
	}
	b.wantBalance(t, "alice", 100)
	b.wantBalance(t, "bob", 0)
}

// If the reply to a transaction is lost, the same bytes are sent again, and the transaction is
// applied once.
func TestE1_LostReplyIsSentAgainAsTheSameBytes(t *testing.T) {
	t.Run("as the SDK wrote it", func(t *testing.T) { loseReplies(t, openBank(t)) })
	t.Run("from its start alone", func(t *testing.T) {
		b := openBank(t)
		faulty, wire := over(b.client)
		b.wire = wire
		b.guardWith(withAPIOption(faulty, func(stack *middleware.Stack) error {
			return stack.Serialize.Add(fromStart{}, middleware.After)
		}))
		loseReplies(t, b)
	})
}

// fromStart is a user's middleware that hides all methods of the request's body except Read and
// Seek. The body is then no longer an io.ReaderAt.
type fromStart struct{}

func (fromStart) ID() string { return "FromStart" }

func (fromStart) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	out middleware.SerializeOutput, metadata middleware.Metadata, err error,
) {
	req, _ := in.Request.(*smithyhttp.Request)
	body, _ := req.GetStream().(io.ReadSeeker)
	if in.Request, err = req.SetStream(struct{ io.ReadSeeker }{body}); err != nil {
		return out, metadata, err
	}
	return next.HandleSerialize(ctx, in)
}

func loseReplies(t *testing.T, b *bank) {
	t.Helper()
	b.wire.after("TransactWriteItems", loseReply, loseReply, loseReply, loseReply, loseReply)
	if got, err := b.do(t.Context(), "k", well); err != nil || got != "moved" {
		t.Fatalf("got %q, %v", got, err)
	}
	b.wantBalance(t, "alice", 70)
	b.wantBalance(t, "bob", 30)
	bodies := b.wire.bodies("TransactWriteItems")
	if len(bodies) != 6 {
		t.Errorf("%d transactions were sent; want 6, over more than one call of the SDK", len(bodies))
	}
	for _, body := range bodies {
		if body != bodies[0] {
			t.Errorf("other bytes were sent again:\n%s\n%s", bodies[0], body)
		}
	}
}

// Each transaction has its own ClientRequestToken.
func TestE1_EachTransactionHasATokenOfItsOwn(t *testing.T) {
	b := openBank(t)
	b.open(t, "alice", 10)
	for range 2 {
		_, _ = b.do(t.Context(), "k", well)
	}
	bodies := b.wire.bodies("TransactWriteItems")
	if len(bodies) != 2 || clientToken(t, bodies[0]) == clientToken(t, bodies[1]) {
		t.Errorf("%q", bodies)
	}
}

func clientToken(t *testing.T, body string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, `"ClientRequestToken":"`)
	token, _, _ := strings.Cut(rest, `"`)
	if !found || len(token) < 20 {
		t.Fatalf("no token in %s", body)
	}
	return token
}

// Enlist panics if nothing would commit the write.
func TestE1_NothingIsEnlistedInVain(t *testing.T) {
	b := openBank(t)
	var kept *Tx
	var late context.Context
	if _, err := b.do(t.Context(), "k", func(ctx context.Context) (string, error) {
		kept, late = Enlist(ctx), ctx
		return "moved", nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, enlist := range map[string]func(){
		"no guard":              func() { Enlist(t.Context()) },
		"after the end, anew":   func() { Enlist(late) },
		"after the end, as was": func() { kept.PutValue("late", b.accounts, account{"carol", 1}) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "dynamostore") {
					t.Errorf("%s: %v; want a panic that says why", name, v)
				}
			}()
			enlist()
		}()
	}
	b.wantBalance(t, "carol", -1)
}

// The writes of an unguarded request are committed before its answer is sent.
func TestE1_UnguardedRequestsCommit(t *testing.T) {
	b := openBank(t)
	h := b.guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		b.move(ctx).Else(lambdaidem.Reject(402, "insufficient_funds", ""))
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "moved"}, nil
	})
	var get events.APIGatewayV2HTTPRequest
	get.RequestContext.HTTP.Method, get.RawPath = http.MethodPut, "/transfers"
	for i, want := range []int{201, 201, 201, 402} {
		resp, err := h(t.Context(), get)
		if err != nil || resp.StatusCode != want {
			t.Errorf("call %d: %+v, %v; want %d", i, resp, err, want)
		}
	}
	b.wantBalance(t, "alice", 10)
	b.wantBalance(t, "bob", 90)
}

func TestE1_UnguardedNetHTTPCommitsBeforeItsAnswer(t *testing.T) {
	b := openBank(t, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	h := b.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Early", "1")
		if r.URL.Path == "/early" {
			_, _ = w.Write([]byte("begun"))
		}
		if r.URL.Path != "/plain" {
			b.move(r.Context()).Else(lambdaidem.Reject(402, "insufficient_funds", ""))
		}
		w.Header().Set("X-Late", "1")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("moved"))
	}))
	put := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, path, nil))
		return w
	}
	for range 3 {
		if w := put("/transfers"); w.Code != 201 || w.Body.String() != "moved" || w.Header().Get("X-Early")+w.Header().Get("X-Late") != "11" {
			t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
		}
	}
	b.wantBalance(t, "bob", 90)
	if w := put("/transfers"); w.Code != 402 || strings.Contains(w.Body.String(), "moved") || w.Header().Get("X-Early")+w.Header().Get("X-Late") != "" {
		t.Errorf("refused: %d %q %v", w.Code, w.Body, w.Header())
	}
	if w := put("/plain"); w.Code != 201 || w.Body.String() != "moved" {
		t.Errorf("without writes: %d %q", w.Code, w.Body)
	}
	defer func() {
		if v := recover(); v == nil {
			t.Error("writes enlisted after the answer had begun are taken in silence")
		}
		b.wantBalance(t, "bob", 90)
	}()
	put("/early")
}

// Invalid writes have an error of their own, and nothing is written.
func TestE3_WhatCantBeWrittenIsRefusedInWords(t *testing.T) {
	type enlist = func(b *bank, ctx context.Context, tx *Tx)
	key := func(id string) map[string]string { return map[string]string{"id": id} }
	for name, c := range map[string]struct {
		enlist enlist
		says   string
		sent   bool // only DynamoDB can detect the mistake
	}{
		"100 writes": {func(b *bank, _ context.Context, tx *Tx) {
			for i := range 99 { // in addition to the debit
				tx.PutValue(fmt.Sprint(i), b.accounts, account{fmt.Sprint(i), 1})
			}
		}, "there are 100", false},
		"one put twice": {func(b *bank, _ context.Context, tx *Tx) {
			tx.PutValue("one", b.accounts, account{"carol", 1})
			tx.PutValue("other", b.accounts, account{"carol", 1})
		}, "same item", false},
		"two to one item": {func(b *bank, _ context.Context, tx *Tx) {
			tx.DeleteValue("one", b.accounts, key("carol"))
			tx.PutValue("other", b.accounts, account{"carol", 1})
		}, `"one"`, false},
		"one item under a name and an ARN": {func(b *bank, _ context.Context, tx *Tx) {
			tx.DeleteValue("one", b.accounts, key("carol"))
			tx.DeleteValue("other", "arn:aws:dynamodb:"+b.store.wire.SDK().Options().Region+":000000000000:table/"+b.accounts, key("carol"))
		}, "same item", false},
		"two puts to one item": {func(b *bank, _ context.Context, tx *Tx) {
			tx.PutValue("one", b.accounts, account{"carol", 1})
			tx.PutValue("other", b.accounts, account{"carol", 2})
		}, "multiple operations on one item", true},
		"two names": {func(b *bank, _ context.Context, tx *Tx) {
			tx.PutValue("one", b.accounts, account{"carol", 1})
			tx.PutValue("one", b.accounts, account{"dave", 1})
		}, "another write has this name", false},
		"no name":  {func(b *bank, _ context.Context, tx *Tx) { tx.PutValue("", b.accounts, account{"carol", 1}) }, "no name", false},
		"no table": {func(_ *bank, _ context.Context, tx *Tx) { tx.PutValue("one", "", account{"carol", 1}) }, "no table", false},
		"the record": {func(b *bank, ctx context.Context, tx *Tx) {
			tx.DeleteValue("one", b.store.table, key(lambdaidem.RecordID(ctx)))
		}, "idempotency record", false},
		"a put over another record": {func(b *bank, ctx context.Context, tx *Tx) {
			tx.PutValue("one", b.store.table, key(lambdaidem.RecordID(ctx)+"x"))
		}, "idempotency record", false},
		"another Region": {func(_ *bank, _ context.Context, tx *Tx) {
			tx.PutValue("one", "arn:aws:dynamodb:mars-north-1:000000000000:table/accounts", account{"carol", 1})
		}, "mars-north-1", false},
		"over 4 MB": {func(b *bank, _ context.Context, tx *Tx) {
			for i := range 12 {
				tx.PutValue(fmt.Sprint(i), b.accounts, map[string]string{"id": fmt.Sprint(i), "text": strings.Repeat("x", 390_000)})
			}
		}, "4 MB", false},
		"a value that can't be": {func(b *bank, _ context.Context, tx *Tx) {
			tx.PutValue("one", b.accounts, map[string]any{"id": "carol", "what": failingValue{}})
		}, "fails on purpose", false},
		"a placeholder twice": {func(b *bank, _ context.Context, tx *Tx) {
			tx.UpdateValue("one", b.accounts, key("carol"), "SET a = :a", Args{":a": 1}).If("b = :a", Args{":a": 2})
		}, ":a is given twice", false},
		"no placeholder": {func(b *bank, _ context.Context, tx *Tx) {
			tx.UpdateValue("one", b.accounts, key("carol"), "SET a = :a", Args{"a": 1})
		}, "must begin with", false},
		"an expression that is none": {func(b *bank, _ context.Context, tx *Tx) {
			tx.UpdateValue("one", b.accounts, key("carol"), "SOT a = 1", nil)
		}, "UpdateExpression", true},
		"an update without an expression": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Update("one", types.Update{TableName: &b.accounts, Key: attributes{"id": str("carol")}})
		}, `"one": it has no update expression`, false},
		"an update with an empty expression": {func(b *bank, _ context.Context, tx *Tx) {
			tx.UpdateValue("one", b.accounts, key("carol"), "", nil)
		}, `"one": it has no update expression`, false},
		"an update without a key": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Update("one", types.Update{TableName: &b.accounts, UpdateExpression: aws.String("SET a = b")})
		}, `"one": it has no key`, false},
		"a put without an item": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Put("one", types.Put{TableName: &b.accounts})
		}, `"one": it has no item`, false},
		"a put of nothing": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Put("one", types.Put{TableName: &b.accounts, Item: attributes{"id": str("carol"), "balance": nil}})
		}, `"one": balance has a nil value`, false},
		"a delete without a key": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Delete("one", types.Delete{TableName: &b.accounts})
		}, `"one": it has no key`, false},
		"a delete by nothing": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Delete("one", types.Delete{TableName: &b.accounts, Key: attributes{"id": nil}})
		}, `"one": id has a nil value`, false},
		"a check without a key": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Check("one", types.ConditionCheck{TableName: &b.accounts, ConditionExpression: aws.String("a = b")})
		}, `"one": it has no key`, false},
		"a check without a condition": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Check("one", types.ConditionCheck{TableName: &b.accounts, Key: attributes{"id": str("carol")}})
		}, `"one": it has no condition`, false},
		"a condition that is empty": {func(b *bank, _ context.Context, tx *Tx) {
			tx.DeleteValue("one", b.accounts, key("carol")).If("", nil)
		}, `"one": its condition is empty`, false},
		"a placeholder for nothing": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Update("one", types.Update{TableName: &b.accounts, Key: attributes{"id": str("carol")},
				UpdateExpression: aws.String("SET a = :a"), ExpressionAttributeValues: attributes{":a": nil}})
		}, `"one": :a has a nil value`, false},
		"a value of an unknown type": {func(b *bank, _ context.Context, tx *Tx) {
			tx.Put("one", types.Put{TableName: &b.accounts, Item: attributes{"id": str("carol"), "what": &types.UnknownUnionMember{}}})
		}, `"one": what has a value of an unknown type`, false},
		"over 4 MB of values": {func(b *bank, _ context.Context, tx *Tx) {
			for i := range 12 {
				tx.UpdateValue(fmt.Sprint(i), b.accounts, key(fmt.Sprint(i)), "SET a = :a", Args{":a": strings.Repeat("x", 390_000)})
			}
		}, "4 MB", false},
		"an item too large": {func(b *bank, _ context.Context, tx *Tx) {
			tx.PutValue("one", b.accounts, map[string]string{"id": "carol", "text": strings.Repeat("x", 410_000)})
		}, `"one"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
				tx := Enlist(ctx)
				tx.UpdateValue("debit", b.accounts, key("alice"), "SET balance = balance - :a", Args{":a": 30})
				c.enlist(b, ctx, tx)
				return "moved", nil
			})
			failed := (*WriteError)(nil)
			if !errors.Is(err, lambdaidem.ErrWriteInvalid) || !errors.As(err, &failed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v; want one that says %q", err, c.says)
			}
			if sent := len(b.wire.bodies("TransactWriteItems")); (sent > 0) != c.sent {
				t.Errorf("%d transactions were sent", sent)
			}
			b.wantBalance(t, "alice", 100)
			if rec := b.record(t, "k"); rec.State != lambdaidem.Released {
				t.Errorf("the record is %s; want it released", rec.State)
			}
		})
	}
}

// The table is in another account. The account of the records is known, because their table is
// given by its ARN.
func TestE3_TableOfAnotherAccountIsRefusedInWords(t *testing.T) {
	client, w := inMemory()
	arn := func(account string) string {
		return "arn:aws:dynamodb:" + client.Options().Region + ":" + account + ":table/t" + account
	}
	s := New(client, arn("111111111111"), func(o *Options) { o.Attempts = 1 })
	for of, refused := range map[string]bool{"111111111111": false, "222222222222": true} {
		tx, _ := s.Begin(strings.NewReader(strings.Repeat("r", 64))).(*transaction)
		tx.enlisted.PutValue("one", arn(of), account{"carol", 1})
		_, err := tx.Commit(t.Context(), &lambdaidem.Completion{Alone: true})
		if got := err != nil && strings.Contains(err.Error(), `"one": its table is of account 222222222222`) && errors.Is(err, lambdaidem.ErrWriteInvalid); got != refused {
			t.Errorf("a table of account %s: %v", of, err)
		}
	}
	if w.trips() != 1 {
		t.Errorf("%d transactions were sent; want the one of the record's own account", w.trips())
	}
}

type failingValue struct{}

func (failingValue) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, errors.New("fails on purpose")
}

// A transaction takes 99 enlisted writes.
func TestE3_NinetyNineWrites(t *testing.T) {
	b := openBank(t)
	if _, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
		for i := range 99 {
			Enlist(ctx).PutValue(fmt.Sprint(i), b.accounts, account{fmt.Sprint(i), i})
		}
		return "moved", nil
	}); err != nil {
		t.Fatal(err)
	}
	b.wantBalance(t, "98", 98)
}

// A handler that drops its writes may return any answer.
func TestE1_DropTakesBackWhatWasEnlisted(t *testing.T) {
	b := openBank(t, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeReleased }
	})
	h := b.guard.APIGatewayV2(func(ctx context.Context, in events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		b.move(ctx)
		Enlist(ctx).PutValue("", "", nil) // an invalid write
		if in.Body == `"drop"` {
			Enlist(ctx).Drop()
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	})
	for body, status := range map[string]int{`"keep"`: 500, `"drop"`: 200} {
		in := events.APIGatewayV2HTTPRequest{RawPath: "/transfer", Body: body, Headers: map[string]string{"idempotency-key": "k"}}
		in.RequestContext.HTTP.Method = http.MethodPost
		if out, err := h(t.Context(), in); err != nil || out.StatusCode != status {
			t.Errorf("%s: %+v, %v; want %d", body, out, err, status)
		}
	}
	b.wantBalance(t, "alice", 100)

	got, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
		b.move(ctx)
		Enlist(ctx).PutValue("", "", nil)
		Enlist(ctx).Drop()
		b.move(ctx) // under the same names as before Drop
		return "moved", nil
	})
	if err != nil || got != "moved" {
		t.Errorf("%q, %v", got, err)
	}
	b.wantBalance(t, "alice", 70)
}

// For each kind of write, a failed condition has the item on which it failed.
func TestE2_FailedConditionsBringTheirItem(t *testing.T) {
	alice := map[string]string{"id": "alice"}
	for name, enlist := range map[string]func(b *bank, tx *Tx) *Write{
		"put": func(b *bank, tx *Tx) *Write {
			return tx.PutValue("one", b.accounts, account{"alice", 1}).If("balance = :b", Args{":b": 7})
		},
		"update": func(b *bank, tx *Tx) *Write {
			return tx.UpdateValue("one", b.accounts, alice, "SET balance = :b", Args{":b": 7}).If("balance = :b", nil)
		},
		"delete": func(b *bank, tx *Tx) *Write {
			return tx.DeleteValue("one", b.accounts, alice).If("balance = :b", Args{":b": 7})
		},
		"check": func(b *bank, tx *Tx) *Write {
			return tx.CheckValue("one", b.accounts, alice, "balance = :b", Args{":b": 7})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t)
			var failed *ConditionFailed
			_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "transfer", Key: "k"}, func(ctx context.Context) (string, error) {
				enlist(b, Enlist(ctx)).ElseFunc(func(c *ConditionFailed) error {
					failed = c
					return nil
				})
				return "done", nil
			})
			if !errors.Is(err, lambdaidem.ErrConditionFailed) || failed == nil || failed.Absent() || failed.Write != "one" || failed.Table != b.accounts {
				t.Fatalf("%v, %+v", err, failed)
			}
			var a account
			if err := failed.Decode(&a); err != nil || a != (account{"alice", 100}) {
				t.Errorf("the item is %+v, %v", a, err)
			}
			b.wantBalance(t, "alice", 100)
		})
	}
}
