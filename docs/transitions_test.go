package docs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The diagrams of docs/correctness.md have the transitions that a record makes, and no other.
// The first diagram is about both policies, the second about Rerun, the third about Hold.
func TestCorrectness_DrawsTheLifeOfARecordAsTheCodeDoes(t *testing.T) {
	var drawn []map[string]bool
	for _, d := range diagrams(t) {
		if d.page != "docs/correctness.md" || d.kind != "stateDiagram-v2" {
			continue
		}
		edges := map[string]bool{}
		for _, line := range d.lines {
			if m := transition.FindStringSubmatch(line); m != nil {
				edges[qualified(m[1])+" to "+qualified(m[2])] = true
			}
		}
		drawn = append(drawn, edges)
	}
	if len(drawn) != 3 {
		t.Fatalf("docs/correctness.md has %d state diagrams; want 3", len(drawn))
	}
	for i, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		want := maps.Clone(drawn[0])
		maps.Copy(want, drawn[1+i])
		made := transitions(t, policy)
		for edge := range want {
			if !made[edge] {
				t.Errorf("docs/correctness.md draws %s under %s, which no record does", edge, policy)
			}
		}
		for edge := range made {
			if !want[edge] {
				t.Errorf("docs/correctness.md does not draw %s under %s", edge, policy)
			}
		}
	}
}

// The drawing in the documentation of package lambdaidem, which can't be a diagram, has every
// state too.
func TestDoc_DrawsEveryState(t *testing.T) {
	_, drawn, _ := strings.Cut(read(t, "lambdaidem/doc.go"), "// # The life of a record\n")
	drawn, _, _ = strings.Cut(drawn, "// Every attempt")
	for _, state := range stateNames(t) {
		if words := strings.ReplaceAll(strings.ToLower(state), "inprogress", "in progress"); !strings.Contains(drawn, words) {
			t.Errorf("lambdaidem/doc.go does not draw the state %s", state)
		}
	}
}

// qualified returns the name of a state by which transitions are compared. A record is
// InProgress in the first diagram only while its lease is live.
func qualified(state string) string {
	if state == "InProgress" {
		return "InProgress_Live"
	}
	return state
}

// life is one record, the guards that change it, and their clock.
type life struct {
	t      *testing.T
	policy lambdaidem.Policy
	now    time.Time
	client *dynamodb.Client
	store  *dynamostore.Store
	seen   lambdaidem.Record // the record when it was last looked at
	state  string            // its state in a diagram
	made   map[string]bool   // the transitions
}

// transitions returns the transitions that a record makes under the policy. It brings records
// into each state, and then lets each kind of attempt, each operation of an operator and time
// act on them.
func transitions(t *testing.T, policy lambdaidem.Policy) map[string]bool {
	t.Helper()
	made := map[string]bool{}
	begin := func() *life {
		l := &life{t: t, policy: policy, now: time.Now().Truncate(time.Second), state: "Absent", made: made}
		l.client = dynamodb.New(dynamodb.Options{
			Region: "eu-west-1", HTTPClient: &memdynamo.Client{DB: memdynamo.New(func() time.Time { return l.now })},
			Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: aws.NopRetryer{},
		})
		for _, table := range []string{"records", "payments"} {
			if err := dynamostore.CreateTable(t.Context(), l.client, table); err != nil {
				t.Fatal(err)
			}
		}
		l.store = dynamostore.New(l.client, "records")
		return l
	}
	before := map[string]func(*life){
		"absent":               func(*life) {},
		"completed":            func(l *life) { l.attempt(nil) },
		"released":             func(l *life) { l.attempt(errRetryable) },
		"uncertain":            func(l *life) { l.attempt(errUncertain) },
		"dead":                 func(l *life) { l.attempt(errUncertain); l.pass(leaseEnds) },
		"dead under Rerun":     func(l *life) { l.under(lambdaidem.Rerun, func() { l.attempt(errUncertain) }); l.pass(leaseEnds) },
		"released and expired": func(l *life) { l.attempt(errRetryable); l.pass(ttlEnds) },
	}
	after := map[string]func(*life){
		"an attempt succeeds":                    func(l *life) { l.attempt(nil) },
		"an attempt fails":                       func(l *life) { l.attempt(errFailed) },
		"an attempt has no effect":               func(l *life) { l.attempt(errRetryable) },
		"an attempt is uncertain":                func(l *life) { l.attempt(errUncertain) },
		"an attempt succeeds late":               func(l *life) { l.late(nil) },
		"an attempt without effect returns late": func(l *life) { l.late(errRetryable) },
		"an attempt without a lease commits":     func(l *life) { l.withoutLease() },
		"an operator releases":                   func(l *life) { l.operate(release) },
		"an operator settles":                    func(l *life) { l.operate(settle) },
		"the lease ends":                         func(l *life) { l.pass(leaseEnds) },
		"the TTL ends":                           func(l *life) { l.pass(leaseEnds); l.pass(ttlEnds) },
	}
	for _, prepare := range before {
		for _, act := range after {
			l := begin()
			prepare(l)
			act(l)
		}
	}
	return made
}

// Times that pass: longer than a lease, and longer than the TTL of a record.
const (
	leaseEnds = 5 * time.Minute
	ttlEnds   = 25 * time.Hour
)

// What a handler returns: errors with each outcome.
var (
	errFailed    = lambdaidem.Reject(402, "card_declined", "The bank declined the card.")
	errRetryable = lambdaidem.Retryable(errors.New("the card was not charged"))
	errUncertain = lambdaidem.Uncertain(errors.New("nobody knows whether the card was charged"))
)

// look notes the transition that the record has made since the last look.
func (l *life) look() {
	l.t.Helper()
	rec, err := l.store.Get(context.Background(), l.guard(l.store).RecordID(lambdaidem.Identity{Operation: "pay", Key: "k"}), l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	state := map[lambdaidem.State]string{lambdaidem.Absent: "Absent", lambdaidem.InProgress: "InProgress_Ended",
		lambdaidem.Completed: "Completed", lambdaidem.Released: "Released"}[rec.State]
	switch {
	case rec.LeaseLiveAt(l.now):
		state = "InProgress_Live"
	case rec.State == lambdaidem.InProgress && l.policy == lambdaidem.Hold:
		state = "InProgress_Abandoned"
	}
	if state != l.state || !reflect.DeepEqual(rec, l.seen) {
		l.made[fmt.Sprintf("%s to %s", l.state, state)] = true
	}
	l.state, l.seen = state, rec
}

// under lets f happen under another policy.
func (l *life) under(policy lambdaidem.Policy, f func()) {
	own := l.policy
	l.policy = policy
	f()
	l.policy = own
}

func (l *life) guard(store lambdaidem.Store, optFns ...func(*lambdaidem.Options)) *lambdaidem.Guard {
	return lambdaidem.New(store, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Policy, o.Observer, o.Clock = "shop", l.policy, lambdaidem.Discard, func() time.Time { return l.now }
	}}, optFns...)...)
}

// call makes the one guarded call of the record. The guard may refuse or replay it, so its
// result doesn't matter: the record does.
func (l *life) call(g *lambdaidem.Guard, handler func(context.Context) (string, error)) {
	_, _ = lambdaidem.Do(l.t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, handler)
	l.look()
}

// attempt makes a call whose handler returns err.
func (l *life) attempt(err error) {
	l.call(l.guard(l.store), func(context.Context) (string, error) {
		l.look()
		return "paid", err
	})
}

// late makes a call whose handler returns err after its lease has ended.
func (l *life) late(err error) {
	l.call(l.guard(l.store), func(context.Context) (string, error) {
		l.look()
		l.pass(leaseEnds)
		return "paid", err
	})
}

// unreachable is a store that no claim reaches.
type unreachable struct{ *dynamostore.Store }

func (unreachable) Acquire(context.Context, lambdaidem.Claim) (lambdaidem.Record, error) {
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "acquire", Reason: lambdaidem.ReasonUnreachable, NotApplied: true, Err: errors.New("no route to host")}
}

// withoutLease makes a call that fails open and enlists a write.
func (l *life) withoutLease() {
	failingOpen := func(o *lambdaidem.Options) { o.FailOpen = true }
	l.call(l.guard(unreachable{l.store}, failingOpen), func(ctx context.Context) (string, error) {
		dynamostore.Enlist(ctx).PutValue("payment", "payments", map[string]string{"id": "1"})
		return "paid", nil
	})
}

// operate lets an operator change the record as it is. The operator may be refused.
func (l *life) operate(change func(context.Context, *dynamostore.Operator, dynamostore.Inspected)) {
	l.t.Helper()
	if l.state == "Absent" {
		return
	}
	o, err := l.store.Operator("alice", "TICKET-1")
	if err != nil {
		l.t.Fatal(err)
	}
	seen, err := l.store.Inspect(l.t.Context(), l.seen.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	change(l.t.Context(), o, seen)
	l.look()
}

func release(ctx context.Context, o *dynamostore.Operator, seen dynamostore.Inspected) {
	_, _ = o.Release(ctx, seen)
}

func settle(ctx context.Context, o *dynamostore.Operator, seen dynamostore.Inspected) {
	_, _ = o.Settle(ctx, seen, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"paid by hand"`)})
}

// pass lets time pass.
func (l *life) pass(d time.Duration) {
	l.t.Helper()
	l.now = l.now.Add(d)
	l.look()
}
