package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// commit is the store operation of a transaction.
const commit = "commit"

// ledger is a store with transactions. Handlers enlist names, and a commit adds them to done.
type ledger struct {
	*faulty
	mu   sync.Mutex
	done []string
	sent []*lambdaidem.Completion
}

// withLedger returns a rig whose store is a ledger.
func withLedger(h handler, optFns ...func(*lambdaidem.Options)) (*rig, *ledger) {
	r := newRig(h)
	l := &ledger{faulty: r.store}
	all := append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", r.seen }}, optFns...)
	r.guard = lambdaidem.New(l, all...)
	r.handler = r.guarded(h)
	return r, l
}

func (l *ledger) Begin(random io.Reader) lambdaidem.Tx {
	if random == nil {
		panic("no randomness")
	}
	return &ledgerTx{ledger: l}
}

func (l *ledger) wantDone(t testing.TB, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.done, want) {
		t.Errorf("done is %v; want %v", l.done, want)
	}
}

type ledgerTx struct {
	ledger     *ledger
	enlisted   []string
	whenFailed bool
	sealed     bool
	refused    error
}

// enlist adds a write to the call's transaction, as the package of a store does for its users.
func enlist(ctx context.Context, name string) *ledgerTx {
	tx, err := lambdaidem.TxOf(ctx)
	if err != nil {
		panic(err)
	}
	t := tx.(*ledgerTx)
	t.enlist(name)
	return t
}

func (t *ledgerTx) enlist(name string) {
	switch {
	case t.sealed:
		panic("enlisted too late")
	case t.refused != nil:
		panic(t.refused.Error())
	}
	t.enlisted = append(t.enlisted, name)
}

func (t *ledgerTx) Writes() int { return len(t.enlisted) }

func (t *ledgerTx) Refuse(why error) { t.refused = why }

func (t *ledgerTx) Seal(o lambdaidem.Outcome) bool {
	t.sealed = true
	return len(t.enlisted) > 0 && (o == lambdaidem.OutcomeSucceeded || o == lambdaidem.OutcomeFailed && t.whenFailed)
}

func (t *ledgerTx) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	t.ledger.mu.Lock()
	t.ledger.sent = append(t.ledger.sent, c)
	t.ledger.mu.Unlock()
	return t.ledger.do(ctx, commit, func() (lambdaidem.Record, error) {
		if had, err := t.ledger.Store.Get(ctx, c.Lease.ID, c.Result.At); err == nil && had.State == lambdaidem.Completed && had.Token == c.Lease.Token {
			return had, nil
		}
		rec, err := t.complete(ctx, c)
		if err == nil {
			t.ledger.mu.Lock()
			t.ledger.done = append(t.ledger.done, t.enlisted...)
			t.ledger.mu.Unlock()
		}
		return rec, err
	})
}

func (t *ledgerTx) complete(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	store := t.ledger.Store
	switch {
	case c.Alone:
		return lambdaidem.Record{}, nil
	case c.Claim != nil:
		rec, err := store.Acquire(ctx, *c.Claim)
		if err != nil || rec.State != lambdaidem.InProgress || rec.Token != c.Claim.Token {
			return rec, errors.Join(err, lambdaidem.ErrLeaseLost)
		}
	}
	return store.Complete(ctx, c.Lease, c.Result)
}

// rejects returns a fault in which a transaction fails because of the handler's own writes.
func rejects(verdict error) fault {
	return func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.Rejected{Err: verdict}
	}
}

// unsettled returns a fault in which a transaction fails, and an earlier request with it may still
// be carried out.
func unsettled(verdict error) fault {
	return func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.Rejected{Err: verdict, Unsettled: true}
	}
}

func created(context.Context) (response, error) {
	return response{StatusCode: 201, Body: "created"}, nil
}

// enlisting returns a handler that enlists "write" and then calls end.
func enlisting(end func(context.Context) (response, error)) handler {
	return func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "write")
		return end(ctx)
	}
}

func TestE1_TransactionTakesThePlaceOfTheCompletion(t *testing.T) {
	r, l := withLedger(enlisting(func(ctx context.Context) (response, error) {
		enlist(ctx, "another")
		return created(ctx)
	}))
	out := r.send(t, first())
	wantReplay(t, r.send(t, first()), out)
	l.wantDone(t, "write", "another")
	r.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventReplayed)
	if e := r.seen.all()[0]; e.Attempt != 1 {
		t.Errorf("the event is %+v", e)
	}
	if want := []string{acquire, commit, acquire}; !slices.Equal(r.store.calls, want) {
		t.Errorf("calls %v; want %v", r.store.calls, want)
	}
}

// If nothing is enlisted, the store gets the same calls as without transactions.
func TestE1_WithoutWritesThereIsNoTransaction(t *testing.T) {
	r, _ := withLedger(nil)
	r.send(t, first())
	if want := []string{acquire, complete}; !slices.Equal(r.store.calls, want) {
		t.Errorf("calls %v; want %v", r.store.calls, want)
	}
}

func TestE1_StoreWithoutTransactionsSaysSo(t *testing.T) {
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		if tx, err := lambdaidem.TxOf(ctx); tx != nil || err == nil || !strings.Contains(err.Error(), "no transactions") {
			t.Errorf("%v, %v", tx, err)
		}
		return response{StatusCode: 200}, nil
	})
	r.send(t, first())
	func() {
		defer func() {
			if v, _ := recover().(string); !strings.Contains(v, "Options.Optimistic") {
				t.Errorf("%q", v)
			}
		}()
		r.guard.With(func(o *lambdaidem.Options) { o.Optimistic = true })
	}()
	if _, err := lambdaidem.TxOf(t.Context()); err == nil {
		t.Error("there is a transaction outside of any handler")
	}
}

// A transaction without a reply is sent again with exactly the same completion.
func TestE1_UnansweredTransactionIsAskedForAgainUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(enlisting(created))
		r.store.fail(commit, requestLost, requestLost, requestLost)
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("%+v", out)
		}
		for _, c := range l.sent {
			if c != l.sent[0] {
				t.Error("it was another completion")
			}
		}
		if len(l.sent) != 4 {
			t.Errorf("asked for %d times", len(l.sent))
		}
	})
}

func TestX4_UnsettledTransactionIsNeverReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(enlisting(created))
		r.store.failAlways(commit, requestLost)
		out := r.send(t, first())
		wantProblem(t, out, 503, lambdaidem.ErrOutcomeUnknown)
		if slices.Contains(r.store.calls, release) || retryAfter(t, out) < 2*time.Second {
			t.Errorf("calls %v, Retry-After %v", r.store.calls, retryAfter(t, out))
		}
		r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventUncertain)
	})
}

// If all further tries must end in the same way, the transaction isn't tried again.
func TestX4_HopelessTransactionIsGivenUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(enlisting(created))
		r.store.failAlways(commit, refused(lambdaidem.ReasonPermission))
		began := time.Now()
		wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestX4_AnswerTooLargeCommitsWithoutIt(t *testing.T) {
	r, l := withLedger(enlisting(created))
	r.store.fail(commit, refused(lambdaidem.ReasonTooLarge))
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("%+v", out)
	}
	wantProblem(t, r.send(t, first()), 500, lambdaidem.ErrAnswerUnavailable)
	l.wantDone(t, "write")
	r.wantRuns(t, 1)
}

// The result of a rejected transaction over HTTP (E2, X2).
func TestE2_RejectionIsTakenAsTheHandlersOwnError(t *testing.T) {
	plain := errors.New("the write was refused")
	for name, c := range map[string]struct {
		verdict error
		policy  lambdaidem.Policy
		status  int    // 0: the handler's error is returned
		body    string // part of the body
		state   lambdaidem.State
		events  []lambdaidem.Kind
	}{
		"rejected": {lambdaidem.Reject(402, "no_funds", "No."), lambdaidem.Rerun, 402, "no_funds", lambdaidem.Completed, []lambdaidem.Kind{lambdaidem.EventNew}},
		"answered": {lambdaidem.Answer(response{StatusCode: 208, Body: "already"}), lambdaidem.Rerun, 208, "already", lambdaidem.Completed, []lambdaidem.Kind{lambdaidem.EventNew}},
		"answered with a failure": {lambdaidem.Answer(response{StatusCode: 409, Body: "no"}), lambdaidem.Rerun, 409, "no", lambdaidem.Completed,
			[]lambdaidem.Kind{lambdaidem.EventNew}},
		"answered with what is no answer": {lambdaidem.Answer("text"), lambdaidem.Rerun, 0, "string", lambdaidem.Released, []lambdaidem.Kind{lambdaidem.EventReleased}},
		"unmarked":                        {plain, lambdaidem.Rerun, 0, "refused", lambdaidem.Released, []lambdaidem.Kind{lambdaidem.EventReleased}},
		"unmarked, held":                  {plain, lambdaidem.Hold, 0, "refused", lambdaidem.InProgress, []lambdaidem.Kind{lambdaidem.EventUncertain}},
		"retryable, held":                 {lambdaidem.Retryable(plain), lambdaidem.Hold, 503, "retryable", lambdaidem.Released, []lambdaidem.Kind{lambdaidem.EventReleased}},
		"uncertain":                       {lambdaidem.Uncertain(plain), lambdaidem.Rerun, 0, "refused", lambdaidem.InProgress, []lambdaidem.Kind{lambdaidem.EventUncertain}},
		"of the store's": {&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: 500, Err: plain}, lambdaidem.Rerun, 500, "condition_failed",
			lambdaidem.Released, []lambdaidem.Kind{lambdaidem.EventReleased}},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := withLedger(enlisting(created), func(o *lambdaidem.Options) { o.Policy = c.policy })
			r.store.fail(commit, rejects(c.verdict))
			out, err := r.handler(t.Context(), first())
			if said := out.Body + fmt.Sprint(err); out.StatusCode != c.status || (c.status == 0) != (err != nil) || !strings.Contains(said, c.body) {
				t.Errorf("%+v, %v", out, err)
			}
			l.wantDone(t)
			if rec := r.record(t); rec.State != c.state {
				t.Errorf("the record is %s; want %s", rec.State, c.state)
			}
			r.wantEvents(t, c.events...)
			if c.state == lambdaidem.Completed {
				wantReplay(t, r.send(t, first()), out)
				r.wantRuns(t, 1)
			}
		})
	}
}

// The error for a rejected transaction also replaces an answer that stood for an error.
func TestE2_VerdictTakesThePlaceOfAProblem(t *testing.T) {
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "write").whenFailed = true
		return response{}, lambdaidem.Reject(404, "none", "There is none.")
	})
	r.store.fail(commit, rejects(lambdaidem.Answer(response{StatusCode: 208, Body: "already"})))
	if out := r.send(t, first()); out.StatusCode != 208 || out.Body != "already" {
		t.Errorf("%+v", out)
	}
	l.wantDone(t)
}

// A handler can also return its answer as an error.
func TestE2_AnswerFromAHandler(t *testing.T) {
	r, l := withLedger(enlisting(func(context.Context) (response, error) {
		return response{}, lambdaidem.Answer(response{StatusCode: 201, Body: "by an error"})
	}))
	out := r.send(t, first())
	if out.StatusCode != 201 || out.Body != "by an error" {
		t.Errorf("%+v", out)
	}
	wantReplay(t, r.send(t, first()), out)
	l.wantDone(t, "write")
}

// The guard gave a transaction up, and the transaction turns out to have happened. Two results of
// one attempt never have the same time, so the guard recognizes this.
func TestE2_CompletionThatHadHappenedIsTheAnswer(t *testing.T) {
	for name, verdict := range map[string]error{
		"stored":   lambdaidem.Reject(402, "no_funds", "No."),
		"answered": lambdaidem.Answer(response{StatusCode: 201, Body: "another"}),
		"released": errors.New("later"),
	} {
		t.Run(name, func(t *testing.T) {
			clock := time.Now()
			r, l := withLedger(enlisting(created), func(o *lambdaidem.Options) { o.Clock = func() time.Time { return clock } })
			r.store.fail(commit, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
				if _, err := call(); err != nil {
					t.Error(err)
				}
				return lambdaidem.Record{}, &lambdaidem.Rejected{Err: verdict}
			})
			if out := r.send(t, first()); out.StatusCode != 201 || out.Body != "created" {
				t.Errorf("%+v", out)
			}
			l.wantDone(t, "write")
			r.wantEvents(t, lambdaidem.EventNew)
		})
	}
}

// A request that runs unguarded commits by itself (E1).
func TestE1_UnguardedRunsCommit(t *testing.T) {
	put := first()
	put.RequestContext.HTTP.Method = http.MethodPut
	optional := func(o *lambdaidem.Options) { o.KeyOptional = true }
	for name, c := range map[string]struct {
		in  request
		opt func(*lambdaidem.Options)
	}{
		"method": {put, func(*lambdaidem.Options) {}},
		"no key": {post("", "{}"), optional},
		"skip":   {first(), func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := withLedger(enlisting(created), c.opt)
			if out := r.send(t, c.in); out.StatusCode != 201 {
				t.Errorf("%+v", out)
			}
			l.wantDone(t, "write")
			if want := []string{commit}; !slices.Equal(r.store.calls, want) || !l.sent[0].Alone {
				t.Errorf("calls %v", r.store.calls)
			}
		})
	}
	t.Run("off", func(t *testing.T) {
		t.Setenv(lambdaidem.SwitchOff, "true")
		r, l := withLedger(enlisting(created))
		r.send(t, first())
		l.wantDone(t, "write")
	})
	t.Run("Do", func(t *testing.T) {
		r, l := withLedger(nil)
		call := lambdaidem.Call{Operation: "op", Skip: true}
		if _, err := lambdaidem.Do(t.Context(), r.guard, call, func(ctx context.Context) (int, error) {
			enlist(ctx, "write")
			if lambdaidem.RecordID(ctx) != "" {
				t.Error("an unguarded run has a record")
			}
			return 1, nil
		}); err != nil {
			t.Error(err)
		}
		l.wantDone(t, "write")
	})
}

// The result of an unguarded run decides about its writes as elsewhere. Its error is unchanged,
// unless Reject made it.
func TestE1_UnguardedRunsThatEndOtherwise(t *testing.T) {
	own := errors.New("no")
	in := first()
	in.RequestContext.HTTP.Method = http.MethodPut
	for name, c := range map[string]struct {
		end    func(context.Context) (response, error)
		fail   []fault
		status int
		code   lambdaidem.Code
		done   []string
	}{
		"failed":       {func(context.Context) (response, error) { return response{StatusCode: 404}, nil }, nil, 404, "", nil},
		"server error": {func(context.Context) (response, error) { return response{StatusCode: 500}, nil }, nil, 500, "", nil},
		"error":        {func(context.Context) (response, error) { return response{}, own }, nil, 0, "", nil},
		"marked error": {func(context.Context) (response, error) { return response{}, lambdaidem.Permanent(own) }, nil, 0, "", nil},
		"rejection":    {func(context.Context) (response, error) { return response{}, lambdaidem.Reject(404, "none", "") }, nil, 404, "none", nil},
		"rejected":     {created, []fault{rejects(lambdaidem.Reject(402, "no_funds", "No."))}, 402, "no_funds", nil},
		"permission":   {created, []fault{refused(lambdaidem.ReasonPermission)}, 503, lambdaidem.ErrOutcomeUnknown, nil},
		"conflict":     {created, []fault{refused(lambdaidem.ReasonConflict), refused(lambdaidem.ReasonThrottled)}, 201, "", []string{"write"}},
		"unsettled":    {created, []fault{unsettled(lambdaidem.Reject(402, "no_funds", "No."))}, 201, "", []string{"write"}},
		"unknown":      {created, slices.Repeat([]fault{requestLost}, 200), 503, lambdaidem.ErrOutcomeUnknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(c.end))
				r.store.fail(commit, c.fail...)
				out, err := r.handler(t.Context(), in)
				if out.StatusCode != c.status || (c.status == 0) != (err != nil) || !strings.Contains(out.Body, string(c.code)) {
					t.Errorf("%+v, %v", out, err)
				}
				l.wantDone(t, c.done...)
			})
		})
	}
}

// Inside a guarded handler, an unguarded request or call of Do uses the outer transaction, so its
// writes happen once.
func TestE1_UnguardedInsideGuarded(t *testing.T) {
	var inner handler
	r, l := withLedger(func(ctx context.Context, in request) (response, error) {
		in.RequestContext.HTTP.Method = http.MethodPut
		if _, err := inner(ctx, in); err != nil {
			return response{}, err
		}
		return response{StatusCode: 500}, nil // and so none of the writes happen
	})
	inner = r.guard.APIGatewayV2(enlisting(created))
	r.send(t, first())
	l.wantDone(t)

	r, l = withLedger(func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "outer")
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "inner", Skip: true}, func(ctx context.Context) (int, error) {
			enlist(ctx, "inner")
			return 1, nil
		})
		return response{StatusCode: 500}, err
	})
	r.send(t, first())
	l.wantDone(t)
}

func TestE1_NothingIsEnlistedOnceTheRunIsOver(t *testing.T) {
	ends := map[string]func(context.Context) (response, error){
		"well":  created,
		"panic": func(context.Context) (response, error) { panic("no") },
		"error": func(context.Context) (response, error) { return response{}, errors.New("no") },
	}
	for name, end := range ends {
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			var late context.Context
			r, _ := withLedger(func(ctx context.Context, _ request) (response, error) {
				late = ctx //nolint:fatcontext // to be used too late
				return end(ctx)
			})
			in := first()
			in.RequestContext.HTTP.Method = method
			func() {
				defer func() { _ = recover() }()
				_, _ = r.handler(t.Context(), in)
			}()
			if tx, err := lambdaidem.TxOf(late); err == nil {
				t.Errorf("%s %s: %v", name, method, tx)
			}
		}
	}
}

// passingServer returns a server with a net/http handler that runs unguarded.
func passingServer(t *testing.T, h http.HandlerFunc) (*httptest.Server, *ledger, *rig) {
	t.Helper()
	r, l := withLedger(nil, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	server := httptest.NewServer(r.guard.Middleware(h))
	t.Cleanup(server.Close)
	return server, l, r
}

// fetched is a response and its body.
type fetched struct {
	StatusCode    int
	Header        http.Header
	ContentLength int64
}

func fetch(t *testing.T, url string) (fetched, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return fetched{resp.StatusCode, resp.Header, resp.ContentLength}, string(body)
}

// Without writes, an unguarded answer is streamed as usual.
func TestE1_UnguardedAnswersStream(t *testing.T) {
	server, _, _ := passingServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		for _, part := range []string{"one ", "two "} {
			_, _ = io.WriteString(w, part)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.(http.Flusher).Flush()
		}
		if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("three")); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
	})
	resp, body := fetch(t, server.URL)
	if resp.StatusCode != 200 || body != "one two three" || resp.ContentLength != -1 {
		t.Errorf("%+v %q", resp, body)
	}
	server, _, _ = passingServer(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 299 Taken\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = rw.Flush()
	})
	if resp, _ := fetch(t, server.URL); resp.StatusCode != 299 {
		t.Errorf("%+v", resp)
	}
}

// With writes, the answer is held back until they are committed.
func TestE1_UnguardedAnswersWaitForTheirWrites(t *testing.T) {
	var l *ledger
	server, ledger, r := passingServer(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Early", "1")
		early := w.Header()
		enlist(req.Context(), "write")
		w.Header().Set("Late", "1")
		early.Set("Kept", "1")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "one ")
		if err := http.NewResponseController(w).Flush(); err == nil {
			t.Error("it is a stream")
		}
		w.(http.Flusher).Flush()
		if _, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("two")); err != nil {
			t.Error(err)
		}
		if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
			t.Error("it is hijacked")
		}
		l.wantDone(t)
	})
	l = ledger
	resp, body := fetch(t, server.URL)
	if resp.StatusCode != 201 || body != "one two" || resp.Header.Get("Early")+resp.Header.Get("Late")+resp.Header.Get("Kept") != "111" {
		t.Errorf("%+v %q", resp, body)
	}
	l.wantDone(t, "write")
	l.done = nil
	for _, c := range []struct {
		verdict error
		status  int
		says    string
	}{
		{lambdaidem.Reject(402, "no_funds", "No."), 402, "no_funds"},
		{errors.New("plain"), 500, "idempotency_condition_failed"},
		{lambdaidem.Answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Other", "1")
			w.WriteHeader(208)
			_, _ = io.WriteString(w, "already")
		})), 208, "already"},
		{lambdaidem.Answer(7), 500, "idempotency_condition_failed"},
	} {
		r.store.fail(commit, rejects(c.verdict))
		resp, body := fetch(t, server.URL)
		if resp.StatusCode != c.status || !strings.Contains(body, c.says) || strings.Contains(body, "one") || resp.Header.Get("Early")+resp.Header.Get("Late") != "" {
			t.Errorf("%v: %d %v %q", c.verdict, resp.StatusCode, resp.Header, body)
		}
	}
	l.wantDone(t)
}

// A net/http handler that sets no status has answered 200, whether its answer is held back or not.
func TestE1_UnguardedAnswerWithoutAStatus(t *testing.T) {
	server, l, _ := passingServer(t, func(_ http.ResponseWriter, req *http.Request) { enlist(req.Context(), "write") })
	if resp, body := fetch(t, server.URL); resp.StatusCode != 200 || body != "" {
		t.Errorf("%+v %q", resp, body)
	}
	l.wantDone(t, "write")
	server, _, _ = passingServer(t, func(http.ResponseWriter, *http.Request) {})
	if resp, body := fetch(t, server.URL); resp.StatusCode != 200 || body != "" {
		t.Errorf("without writes: %+v %q", resp, body)
	}
}

// Once an answer has begun, no write can be enlisted.
func TestE1_UnguardedAnswerThatBeganTakesNoWrites(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(200) },
		"body":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, "begun") },
		"flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"copy":   func(w http.ResponseWriter) { _, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("begun")) },
	} {
		server, l, _ := passingServer(t, func(w http.ResponseWriter, req *http.Request) {
			begin(w)
			if tx, err := lambdaidem.TxOf(req.Context()); err == nil {
				t.Errorf("%s: %v", name, tx)
			}
		})
		if resp, _ := fetch(t, server.URL); resp.StatusCode != 200 {
			t.Errorf("%s: %+v", name, resp)
		}
		l.wantDone(t)
	}
}

// The result of a rejection in a guarded net/http handler.
func TestE2_RejectionInNetHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		verdict error
		status  int
		says    string
	}{
		"rejected": {lambdaidem.Reject(402, "no_funds", "No."), 402, "no_funds"},
		"plain":    {errors.New("plain"), 500, "idempotency_condition_failed"},
		"answered": {lambdaidem.Answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(208) })), 208, ""},
		"amiss":    {lambdaidem.Answer(7), 500, "idempotency_condition_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := withLedger(nil, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
			h := r.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				enlist(req.Context(), "write")
				w.Header().Set("Late", "1")
				_, _ = io.WriteString(w, "created")
			}))
			r.store.fail(commit, rejects(c.verdict))
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || strings.Contains(w.Body.String(), "created") || w.Header().Get("Late") != "" {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
			l.wantDone(t)
		})
	}
}

// If a transaction may have happened, it is sent again, whatever the last error was (X8).
func TestX8_RefusalAfterTheUnknownIsNoReasonToGiveUp(t *testing.T) {
	doubtful := func(_ context.Context, verb string, _ func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonPermission, Err: errWire}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		synctest.Test(t, func(t *testing.T) {
			r, l := withLedger(enlisting(created))
			r.store.fail(commit, doubtful, doubtful)
			in := first()
			in.RequestContext.HTTP.Method = method
			if out := r.send(t, in); out.StatusCode != 201 {
				t.Errorf("%s: %+v", method, out)
			}
			l.wantDone(t, "write")
		})
	}
}

// A middleware that lets a request pass inside a guarded one leaves the writes to the guarded one.
func TestE1_UnguardedMiddlewareInsideAGuardedOne(t *testing.T) {
	r, l := withLedger(nil, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	inner := r.guard.With(func(o *lambdaidem.Options) { o.Methods = []string{http.MethodDelete} })
	for status, want := range map[int][]string{500: nil, 201: {"write"}} {
		l.done = nil
		h := r.guard.Middleware(inner.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			enlist(req.Context(), "write")
			w.WriteHeader(status)
		})))
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", fmt.Sprint(status))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		l.wantDone(t, want...)
		if w.Code != status {
			t.Errorf("%d", w.Code)
		}
	}
}

// A transaction of a call that failed open is sent again like any other (E1, X5).
func TestE1_FailedOpenAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(enlisting(created), func(o *lambdaidem.Options) { o.FailOpen = true })
		r.store.fail(acquire, requestLost)
		r.store.fail(commit, requestLost, replyLost)
		if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) {
			t.Errorf("%+v", out)
		}
		l.wantDone(t, "write")
		for _, c := range l.sent {
			if c != l.sent[0] || c.Claim == nil {
				t.Errorf("%+v", c)
			}
		}
	})
}

// A call that failed open while it took a record over goes on with that record, whether
// or not the takeover arrived.
func TestX5_FailedOpenCompletesTheRecordThatItTookOver(t *testing.T) {
	for name, lost := range map[string]fault{"the takeover arrived": replyLost, "the takeover did not arrive": requestLost} {
		t.Run(name, func(t *testing.T) {
			fails := true
			r, l := withLedger(enlisting(func(ctx context.Context) (response, error) {
				if fails {
					lambdaidem.DownstreamKey(ctx, "charge")
					return response{}, lambdaidem.Retryable(errWire)
				}
				return created(ctx)
			}), func(o *lambdaidem.Options) { o.FailOpen = true })
			r.mustRun(t, first())
			released := r.record(t)
			fails = false
			r.store.fail(acquire, nil, lost) // the first acquire finds the record
			if out := r.send(t, first()); out.StatusCode != 201 {
				t.Fatalf("the call is answered with %+v", out)
			}
			l.wantDone(t, "write")
			if over := l.sent[0].Claim.Over; over == nil || over.Token != released.Token {
				t.Errorf("the completion replaces %+v; want the released record", over)
			}
			if rec := r.record(t); rec.State != lambdaidem.Completed || rec.Attempt != 2 || rec.Bound != released.Bound || rec.Bound == "" {
				t.Errorf("the record is %+v; want attempt 2, completed, bound to its payload", rec)
			}
		})
	}
}

// A call that failed open and meets a record with steps at its commit does not claim the
// record, because the steps would be lost. The record needs no operator: a retry that gets
// the lease continues after the steps.
func TestX5_FailedOpenLeavesARecordWithStepsToARetry(t *testing.T) {
	charged, fails := 0, true
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { charged++; return 1, nil }); err != nil || fails {
			return response{StatusCode: 503}, err
		}
		enlist(ctx, "write")
		return created(ctx)
	}, failOpen)
	r.mustRun(t, first())
	fails = false
	r.store.fail(acquire, requestLost)
	r.seen.forget()
	wantProblem(t, r.send(t, first()), 409, lambdaidem.ErrInProgress)
	r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventFailedOpen, lambdaidem.EventInProgress)
	l.wantDone(t)
	if rec := r.record(t); rec.State != lambdaidem.Released || len(rec.Steps) != 1 {
		t.Errorf("the record is %s, with the steps %v", rec.State, rec.Steps)
	}
	before := charged
	if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) || charged != before {
		t.Errorf("the retry gets %+v; it ran the step %d times", out, charged-before)
	}
	l.wantDone(t, "write")
}

// The release that would prevent a late transaction can't be written. Then the answer doesn't say
// that nothing happened (X8).
func TestX8_UnsettledRejectionThatCantBeReleasedIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(enlisting(created))
		r.store.fail(commit, unsettled(lambdaidem.Retryable(errors.New("later"))))
		r.store.failAlways(release, requestLost)
		wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
	})
}

// The rejection of a transaction that may still commit is to be released, and the release
// fails. A later call of the process sends it again, so that the record is not held. The
// release is safe: a transaction that commits before it completes the record, and one that
// arrives after it is refused.
func TestX10_TheReleaseAfterAnUnsettledRejectionIsSentAgain(t *testing.T) {
	for name, open := range map[string]bool{"with a lease": false, "failed open": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), hold, func(o *lambdaidem.Options) { o.FailOpen = open })
				if open {
					r.store.fail(acquire, replyLost)
				}
				r.store.fail(commit, unsettled(lambdaidem.Retryable(errors.New("later"))))
				r.store.failAlways(release, requestLost)
				wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
				r.wantState(t, lambdaidem.InProgress)
				r.store.failAlways(release, nil)
				r.send(t, post("key-2", "{}"))
				r.wantState(t, lambdaidem.Released)
				if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) {
					t.Errorf("the retry gets %+v", out)
				}
				l.wantDone(t, "write", "write")
			})
		})
	}
}

// After a rejection whose transaction may still happen, no answer says that nothing happened,
// however the attempt ends without a record (X8).
func TestX8_UnsettledRejectionWithoutARecordIsUnknown(t *testing.T) {
	plain := errors.New("plain")
	hold := func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }
	open := func(o *lambdaidem.Options) { o.FailOpen = true }
	for name, c := range map[string]struct {
		opt     func(*lambdaidem.Options)
		verdict error
	}{
		"held":                   {hold, plain},
		"optimistic, released":   {optimistic, lambdaidem.Retryable(plain)},
		"failed open, released":  {open, lambdaidem.Retryable(plain)},
		"failed open, uncertain": {open, lambdaidem.Uncertain(lambdaidem.Reject(504, "later", "Later."))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), c.opt)
				if strings.HasPrefix(name, "failed open") {
					r.store.fail(acquire, requestLost)
				}
				r.store.fail(commit, unsettled(c.verdict))
				wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
				l.wantDone(t)
			})
		})
	}
}

// The transaction takes over the record of an attempt that was released, or has died. The record is
// unchanged after the rejection, so an earlier request of the transaction may still commit.
func TestX8_UnsettledRejectionOverAnEarlierRecordIsUnknown(t *testing.T) {
	for name, earlier := range map[string]error{"released": errWire, "died": lambdaidem.Uncertain(errWire)} {
		for kind, verdict := range map[string]error{"no effect": lambdaidem.Retryable(errWire), "503": lambdaidem.Reject(503, "no_funds", "No."), "not marked": errWire} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, l := withLedger(enlisting(created), failOpen)
					_, _ = r.later(func(context.Context, request) (response, error) { return response{}, earlier }).handler(t.Context(), first())
					time.Sleep(5 * time.Minute)
					l.fail(acquire, requestLost)
					// The first transaction would create a record. The next one takes over the
					// earlier record.
					l.fail(commit, nil, unsettled(verdict))
					wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
					l.wantDone(t)
				})
			})
		}
	}
}

// The caller of Do must not find the code of a rejection in the error if the transaction may
// still commit: the caller would take the unknown outcome for a definite one.
func TestX8_UnsettledRejectionHidesItsCode(t *testing.T) {
	const declined lambdaidem.Code = "card_declined"
	for name, c := range map[string]struct {
		opt     func(*lambdaidem.Options)
		verdict error
		key     string
		before  func(*faulty)
	}{
		"held":                  {hold, errors.Join(lambdaidem.Reject(503, declined, "No."), errWire), "k", nil},
		"can't be released":     {quiet, lambdaidem.Retryable(lambdaidem.Reject(402, declined, "No.")), "k", func(s *faulty) { s.failAlways(release, requestLost) }},
		"optimistic, released":  {optimistic, lambdaidem.Retryable(lambdaidem.Reject(402, declined, "No.")), "k", nil},
		"failed open, released": {func(o *lambdaidem.Options) { o.FailOpen = true }, lambdaidem.Retryable(lambdaidem.Reject(402, declined, "No.")), "k", func(s *faulty) { s.fail(acquire, requestLost) }},
		"unguarded":             {func(o *lambdaidem.Options) { o.KeyOptional = true }, lambdaidem.Reject(402, declined, "No."), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := withLedger(nil, c.opt)
				if c.before != nil {
					c.before(r.store)
				}
				r.store.failAlways(commit, unsettled(c.verdict))
				_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "charge", Key: c.key}, func(ctx context.Context) (int, error) {
					enlist(ctx, "write")
					return 1, nil
				})
				if errors.Is(err, declined) || !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("Do returned %v", err)
				}
			})
		})
	}
}

// The answer to a rejection is stored by a second transaction. If DynamoDB rejects the second
// one, the first may still commit.
func TestX8_ALaterRejectionDoesNotSettleAnEarlierOne(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic)
	r.store.fail(commit, unsettled(lambdaidem.Reject(402, "no_funds", "No.")), rejects(lambdaidem.Retryable(errors.New("later"))))
	wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
	l.wantDone(t)
}

// The reply to a transaction does not have the number of the attempt.
func TestO1_TheEventOfATransactionNamesItsAttempt(t *testing.T) {
	ends := endings{with(500), with(201)}
	r, _ := withLedger(enlisting(func(context.Context) (response, error) { return ends.next() }))
	r.store.fail(commit, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		rec, err := call()
		rec.Attempt = 0
		return rec, err
	})
	r.send(t, first())
	r.send(t, first())
	if e := r.seen.last(t); e.Kind != lambdaidem.EventNew || e.Attempt != 2 {
		t.Errorf("the event is %s of attempt %d", e.Kind, e.Attempt)
	}
}

// The error for a rejected transaction of a call that failed open is stored, so that the next
// request gets the same one (E1, X5).
func TestE1_FailedOpenStoresAVerdict(t *testing.T) {
	r, _ := withLedger(enlisting(created), func(o *lambdaidem.Options) { o.FailOpen = true })
	r.store.fail(acquire, requestLost)
	r.store.fail(commit, rejects(lambdaidem.Reject(402, "no_funds", "No.")))
	out := r.send(t, first())
	if out.StatusCode != 402 {
		t.Errorf("%+v", out)
	}
	wantReplay(t, r.send(t, first()), out)
	r.wantRuns(t, 1)
}

// If the user's function for a rejection panics, that counts as a panic of the handler: nothing was
// written (X2).
func TestX2_PanicOfAVerdictReleases(t *testing.T) {
	r, _ := withLedger(enlisting(created))
	r.store.fail(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.Rejected{Err: errWire, Verdict: func() error { panic("own") }}
	})
	func() {
		defer func() {
			if v := recover(); v != "own" {
				t.Errorf("recovered %v", v)
			}
		}()
		r.send(t, first())
	}()
	r.wantState(t, lambdaidem.Released)
}

// An Answer that is wrapped in another error is an error (X2).
func TestX2_WrappedAnswerIsAnError(t *testing.T) {
	r, l := withLedger(enlisting(func(context.Context) (response, error) {
		return response{}, lambdaidem.Uncertain(lambdaidem.Answer(response{StatusCode: 201}))
	}))
	if out, err := r.handler(t.Context(), first()); err == nil {
		t.Errorf("%+v", out)
	}
	_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "op", Key: "k"}, func(context.Context) (int, error) {
		return 0, errors.Join(lambdaidem.Answer(1), errWire)
	})
	if !errors.Is(err, errWire) {
		t.Errorf("%v", err)
	}
	l.wantDone(t)
}

// If the transaction of an unguarded request is rejected, the error that replaces the
// handler's success becomes a problem document, as in a guarded request.
func TestE1_UnguardedRejectionsBecomeProblemDocuments(t *testing.T) {
	in := first()
	in.RequestContext.HTTP.Method = http.MethodPut
	for _, c := range []struct {
		verdict error
		status  int
		code    lambdaidem.Code
	}{
		{lambdaidem.Retryable(errors.New("later")), 503, lambdaidem.ErrRetryable},
		{lambdaidem.Permanent(errors.New("never")), 500, lambdaidem.ErrPermanent},
	} {
		r, _ := withLedger(enlisting(created))
		r.store.fail(commit, rejects(c.verdict))
		wantProblem(t, r.send(t, in), c.status, c.code)
	}
}

// An unguarded request that can't commit is answered in time (L5, E1).
func TestL5_UnguardedCommitLeavesTimeToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(enlisting(created))
		r.store.failAlways(commit, requestLost)
		in := first()
		in.RequestContext.HTTP.Method = http.MethodPut
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		wantProblem(t, r.sendCtx(ctx, t, in), 503, lambdaidem.ErrOutcomeUnknown)
		if left := 10*time.Second - time.Since(began); left < 100*time.Millisecond {
			t.Errorf("%v were left to answer", left)
		}
	})
}

// The function for the rejection of an optimistic inner call panics while the inner transaction may
// still commit. The outer handler recovers and fails, and this failure is not stored.
func TestX8_AnOptimisticInnerCallThatPanicsWhileItsTransactionMayCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(nil)
		inner := r.guard.With(optimistic)
		r.handler = r.guarded(func(ctx context.Context, _ request) (out response, err error) {
			defer func() {
				if recover() != nil {
					out, err = response{StatusCode: 402}, nil
				}
			}()
			_, err = lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
				enlist(ctx, "debit")
				return 1, nil
			})
			return response{StatusCode: 201}, err
		})
		r.store.fail(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			return lambdaidem.Record{}, &lambdaidem.Rejected{Err: errWire, Unsettled: true, Verdict: func() error { panic("own") }}
		})
		wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
		r.wantState(t, lambdaidem.InProgress)
	})
}

// logged is the ResponseWriter of a logging handler. It has only Unwrap, by which
// http.ResponseController finds the methods of the server's ResponseWriter.
type logged struct{ http.ResponseWriter }

func (l logged) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// An unguarded handler that has enlisted a write can neither flush its response nor take the
// connection before the write is committed, whatever is around the guard. Once it has flushed,
// it can't enlist.
func TestE1_NothingLeavesAnUnguardedHandlerBeforeTheCommit(t *testing.T) {
	flush := func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }
	hijack := func(w http.ResponseWriter) error {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for name, around := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"the server's": func(w http.ResponseWriter) http.ResponseWriter { return w },
		"a logging":    func(w http.ResponseWriter) http.ResponseWriter { return logged{w} },
	} {
		for does, c := range map[string]struct {
			first, then func(http.ResponseWriter) error
			status      int
		}{
			"flushes":       {nil, flush, http.StatusConflict},
			"hijacks":       {nil, hijack, http.StatusConflict},
			"flushes first": {flush, nil, http.StatusOK},
		} {
			t.Run(name+" writer, "+does, func(t *testing.T) {
				r, l := withLedger(nil, anonymous)
				r.store.fail(commit, rejects(lambdaidem.Reject(http.StatusConflict, "no_funds", "No.")))
				h := r.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
					if c.first != nil {
						if err := c.first(w); err != nil {
							t.Errorf("first: %v", err)
						}
						defer func() {
							if recover() == nil {
								t.Error("a write was enlisted after the response had begun")
							}
						}()
					}
					enlist(in.Context(), "debit")
					if err := c.then(w); does == "hijacks" && err == nil {
						t.Error("the connection was taken")
					}
					_, _ = w.Write([]byte("paid"))
				}))
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) { h.ServeHTTP(around(w), in) }))
				defer s.Close()
				if got, _ := fetch(t, s.URL); got.StatusCode != c.status {
					t.Errorf("the client got %d, want %d", got.StatusCode, c.status)
				}
				l.wantDone(t)
			})
		}
	}
}

// The database refuses the write that a message's handler has enlisted. The message fails, and a
// redelivery runs it again. With an Answer, the message is done.
func TestE1_AMessageWhoseWriteIsRefusedFails(t *testing.T) {
	for name, c := range map[string]struct {
		verdict  error
		failures int
		runs     int
	}{
		"an error":  {errBroken, 1, 2},
		"an answer": {lambdaidem.Answer(nil), 0, 1},
	} {
		r, l := withLedger(nil)
		runs := 0
		h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
			runs++
			enlist(ctx, "write")
			return nil
		}, silent[events.SQSMessage])
		r.store.fail(commit, rejects(c.verdict))
		if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != c.failures {
			t.Errorf("%s: the batch returned %+v, %v", name, out, err)
		}
		l.wantDone(t)
		if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != 0 || runs != c.runs {
			t.Errorf("%s: delivered again, the batch returned %+v, %v; the handler ran %d times", name, out, err, runs)
		}
	}
}

// Handlers outside the guard see the pattern that a mux inside it has found, although the request
// ran unguarded.
func TestE1_OuterHandlersSeeThePatternOfAnUnguardedRequest(t *testing.T) {
	r, _ := withLedger(nil, anonymous)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) {})
	h, pattern := r.guard.Middleware(mux), ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		h.ServeHTTP(w, in)
		pattern = in.Pattern
	}))
	fetch(t, s.URL+"/orders/7")
	s.Close() // waits for the handler
	if pattern != "GET /orders/{id}" {
		t.Errorf("the pattern is %q", pattern)
	}
}
