package docs_test

import (
	"context"
	"errors"
	"maps"
	"slices"
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

// The diagrams of docs/correctness.md have exactly the transitions that records make. The first
// diagram shows the transitions under both policies, the second those under Rerun alone and the third
// those under Hold alone. The label of a transition names everyone who makes it.
func TestCorrectness_DrawsTheLifeOfARecordAsTheCodeDoes(t *testing.T) {
	var drawn []map[string]string // the labels of each diagram, by transition
	for _, d := range diagrams(t) {
		if d.page != "docs/correctness.md" || d.kind != "stateDiagram-v2" {
			continue
		}
		labels := map[string]string{}
		for _, line := range d.lines {
			if m := transition.FindStringSubmatch(line); m != nil {
				labels[qualified(m[1])+" to "+qualified(m[2])] = m[3]
			}
		}
		drawn = append(drawn, labels)
	}
	if len(drawn) != 3 {
		t.Fatalf("docs/correctness.md has %d state diagrams; want 3", len(drawn))
	}
	for i, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		want := maps.Clone(drawn[0])
		maps.Copy(want, drawn[1+i])
		made := transitions(t, policy)
		for edge, label := range want {
			if got, want := slices.Sorted(maps.Keys(made[edge])), makersIn(label); !slices.Equal(got, want) {
				t.Errorf("%s under %s is made by %q; the label %q in docs/correctness.md names %q", edge, policy, got, label, want)
			}
		}
		for edge := range made {
			if want[edge] == "" {
				t.Errorf("docs/correctness.md does not draw %s under %s", edge, policy)
			}
		}
	}
}

// The makers of transitions, as the labels name them. A label without any other maker means inTime:
// an attempt that holds a lease and ends before the lease does.
const (
	inTime       = "attempt"
	late         = "late"
	withoutLease = "without a lease"
	operator     = "operator"
	leaseEnd     = "lease ends"
	ttl          = "TTL"
)

// makersIn returns the makers that the label of a transition names, in alphabetical order.
func makersIn(label string) []string {
	var makers []string
	for _, who := range []string{late, withoutLease, operator, leaseEnd, ttl} {
		if strings.Contains(label, who) {
			makers = append(makers, who)
		}
	}
	if makers == nil {
		return []string{inTime}
	}
	slices.Sort(makers)
	return makers
}

// The drawing in the documentation of package lambdaidem has every state as well. The drawing is plain
// text, because pkg.go.dev does not render Mermaid diagrams.
func TestDoc_DrawsEveryState(t *testing.T) {
	_, drawn, _ := strings.Cut(read(t, "lambdaidem/doc.go"), "// # The life of a record\n")
	drawn, _, _ = strings.Cut(drawn, "// Every attempt")
	for _, state := range stateNames(t) {
		if words := strings.ReplaceAll(strings.ToLower(state), "inprogress", "in progress"); !strings.Contains(drawn, words) {
			t.Errorf("lambdaidem/doc.go does not draw the state %s", state)
		}
	}
}

// qualified returns the name of a state for comparisons. InProgress in the first diagram means that the
// lease is live, which the other diagrams call InProgress_Live.
func qualified(state string) string {
	if state == "InProgress" {
		return "InProgress_Live"
	}
	return state
}

// life is one record in a table, with the clock of everyone who changes the record.
type life struct {
	t      *testing.T
	policy lambdaidem.Policy
	now    time.Time
	client *dynamodb.Client
	store  *dynamostore.Store
	id     string                     // the id of the record; empty if there was no record at the last look
	state  string                     // the state of the record at the last look, as diagrams name it
	maker  string                     // who acts on the record until the next look
	made   map[string]map[string]bool // the makers of each transition
}

// transitions returns the transitions that records make under the policy, with their makers. For each
// state, transitions brings one record after another into that state, and then lets an attempt of each
// kind, each operation of an operator and the passing of time act on one of them.
func transitions(t *testing.T, policy lambdaidem.Policy) map[string]map[string]bool {
	t.Helper()
	made := map[string]map[string]bool{}
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
		"dead":                 func(l *life) { l.attempt(errUncertain); l.pass(untilLeaseEnds) },
		"dead under Rerun":     func(l *life) { l.under(lambdaidem.Rerun, func() { l.attempt(errUncertain) }); l.pass(untilLeaseEnds) },
		"released and expired": func(l *life) { l.attempt(errRetryable); l.pass(untilExpiry) },
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
		"the lease ends":                         func(l *life) { l.pass(untilLeaseEnds) },
		"the TTL ends":                           func(l *life) { l.pass(untilLeaseEnds); l.pass(untilExpiry) },
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

const (
	untilLeaseEnds = 5 * time.Minute // longer than a lease
	untilExpiry    = 25 * time.Hour  // longer than the TTL of a record
)

// Errors of a handler, one for each outcome.
var (
	errFailed    = lambdaidem.Reject(402, "card_declined", "The bank declined the card.")
	errRetryable = lambdaidem.Retryable(errors.New("the card was not charged"))
	errUncertain = lambdaidem.Uncertain(errors.New("nobody knows whether the card was charged"))
)

// look reads the record, and notes the transition that the record has made since the last look.
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
	if state != l.state {
		edge := l.state + " to " + state
		if l.made[edge] == nil {
			l.made[edge] = map[string]bool{}
		}
		l.made[edge][l.maker] = true
	}
	l.state, l.id = state, rec.ID
}

// under calls f while the guards have another policy.
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

// call makes a guarded call with the key of the record. The guard may refuse the call or replay an
// answer, so call ignores the result and looks at the record.
func (l *life) call(g *lambdaidem.Guard, handler func(context.Context) (string, error)) {
	_, _ = lambdaidem.Do(l.t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, handler)
	l.look()
}

// attempt makes a call whose handler returns err.
func (l *life) attempt(err error) {
	l.maker = inTime
	l.call(l.guard(l.store), func(context.Context) (string, error) {
		l.look()
		return "paid", err
	})
}

// late makes a call whose handler returns err after its lease has ended.
func (l *life) late(err error) {
	l.maker = inTime
	l.call(l.guard(l.store), func(context.Context) (string, error) {
		l.look()
		l.pass(untilLeaseEnds)
		l.maker = late
		return "paid", err
	})
}

// unreachable is a store whose Acquire always fails as if the store could not be reached.
type unreachable struct{ *dynamostore.Store }

func (unreachable) Acquire(context.Context, lambdaidem.Claim) (lambdaidem.Record, error) {
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "acquire", Reason: lambdaidem.ReasonUnreachable, NotApplied: true, Err: errors.New("no route to host")}
}

// withoutLease makes a call that fails open and enlists a write.
func (l *life) withoutLease() {
	l.maker = withoutLease
	failingOpen := func(o *lambdaidem.Options) { o.FailOpen = true }
	l.call(l.guard(unreachable{l.store}, failingOpen), func(ctx context.Context) (string, error) {
		dynamostore.Enlist(ctx).PutValue("payment", "payments", map[string]string{"id": "1"})
		return "paid", nil
	})
}

// operate lets an operator change the record, if there is one. The store may refuse the change.
func (l *life) operate(change func(context.Context, *dynamostore.Operator, dynamostore.Inspected)) {
	l.t.Helper()
	if l.state == "Absent" {
		return
	}
	o, err := l.store.Operator("alice", "TICKET-1")
	if err != nil {
		l.t.Fatal(err)
	}
	seen, err := l.store.Inspect(l.t.Context(), l.id)
	if err != nil {
		l.t.Fatal(err)
	}
	l.maker = operator
	change(l.t.Context(), o, seen)
	l.look()
}

func release(ctx context.Context, o *dynamostore.Operator, seen dynamostore.Inspected) {
	_, _ = o.Release(ctx, seen)
}

func settle(ctx context.Context, o *dynamostore.Operator, seen dynamostore.Inspected) {
	_, _ = o.Settle(ctx, seen, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`"paid by hand"`)})
}

// pass moves the clock forward by d.
func (l *life) pass(d time.Duration) {
	l.t.Helper()
	l.maker = leaseEnd
	if d == untilExpiry {
		l.maker = ttl
	}
	l.now = l.now.Add(d)
	l.look()
}
