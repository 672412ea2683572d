package simulator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file simulates operators: people who look at a record at a random moment, think, and then
// release, settle or purge it, while attempts and other operators are at work. Each operation has
// its own process, whose requests meet the same faults as those of the function.

// operators are the operators of a plan. The zero value means that there are none.
type operators struct {
	count  int           // the number of operators; they look at the same records at the same time
	looks  int           // how often each of them looks
	ahead  time.Duration // how far the database's clock is ahead of the world's
	forget bool          // they forget records too
}

// newOperators gives some plans operators. It draws from a random stream of its own, so
// that the rest of each plan does not depend on it.
func newOperators(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0x0be7a704))
	if r.Float64() >= 0.25 {
		return
	}
	p.operators = operators{count: 1 + r.IntN(3), looks: 4 + r.IntN(8), forget: r.Float64() < 0.4}
	if r.Float64() < 0.3 { // attempts that continue late, while their record waits for an operator
		p.policyHold = p.policyHold || p.effects.optimistic < 1 // New allows no Hold with Optimistic
		p.rate, p.faults = max(p.rate, 0.15), append(p.faults, Stall)
	}
	// The functions' clocks are ahead of the world's by up to skew. No two clocks differ by more
	// than MaxSkew, unless the functions' own clocks already do.
	least := min(p.skew, p.maxSkew) - p.maxSkew
	p.operators.ahead = least + time.Duration(r.Int64N(int64(p.maxSkew-least)))
}

// act is what an operator wants to do.
type act string

// The acts.
const (
	releases act = "release"
	settles  act = "settle"
	erases   act = "erase"
	forgets  act = "forget"
)

// operation is one thing that an operator does, and its result.
type operation struct {
	act   act
	seen  lambdaidem.Record // the record as it was shown to the operator
	began bool              // the method of dynamostore.Operator was called
	wrote int               // how many of its writes to the record were applied
	ended bool              // the method returned, with err
	err   error
}

// operators starts the plan's operators. They look at the same record at about the same time, so
// that they compete.
func (w *world) operators(all *sync.WaitGroup) {
	o := &w.plan.operators
	for n := range o.count {
		all.Go(func() {
			shared := rand.New(rand.NewPCG(w.seed, 0x0be7a705))
			own := rand.New(rand.NewPCG(w.seed, 0x0be7a706+uint64(n))) //nolint:gosec // it is at least 0
			for look := range o.looks {
				time.Sleep(w.plan.paced(time.Duration(shared.Int64N(int64(5*time.Second)))) + time.Duration(own.Int64N(int64(20*time.Millisecond))))
				ord := order{Key: fmt.Sprintf("k%d", shared.IntN(w.plan.keys)), Owner: "alice"}
				if shared.Float64() < 0.15 {
					ord.Owner = "bob"
				}
				acts := []act{releases, settles, releases, settles, erases}
				if o.forget {
					acts = append(acts, forgets)
				}
				id := uint64(2_000_000 + 1000*n + look) //nolint:gosec // it is at least 0
				a := w.newActor(id, ord)
				a.operation = &operation{act: acts[own.IntN(len(acts))]}
				a.serveOnce(w.plan.paced(time.Duration(own.Int64N(int64(2 * time.Second)))))
			}
		})
	}
}

// serveOnce runs the operation. It returns when the operation has ended or its process is dead.
func (a *actor) serveOnce(thinks time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done) // deferred, because the process may die at any point
		defer a.cancel()
		a.w.journal.operatorBegins(a)
		err := a.operate(thinks)
		a.exitIfKilled()
		a.w.journal.operatorEnds(a, err)
	}()
	select {
	case <-done:
	case <-a.killed:
		<-done
	}
}

// operate looks at a record, waits, and acts on what it saw. It returns errNothingSeen if there is
// no record, and the errors of the operation.
func (a *actor) operate(thinks time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), a.w.plan.paced(time.Minute))
	defer cancel()
	store := dynamostore.New(newDynamoDB(a), table, func(o *dynamostore.Options) {
		o.Random = a.rng.Float64
		a.w.plan.large.options(o)
		o.AttemptTimeout = 1_500_000_007
	})
	o, err := store.Operator(fmt.Sprintf("operator %d", a.id), "simulated", func(o *dynamostore.OperatorOptions) {
		o.Random, o.MaxSkew = a, a.w.plan.maxSkew
		if m := a.w.mut; m != nil && m.Operator != nil {
			m.Operator(o)
		}
	})
	if err != nil {
		return fmt.Errorf("an operator without a name: %w", err)
	}
	id := a.guard().RecordID(lambdaidem.Identity{Method: http.MethodPost, Route: "/payments", Principal: "jwt:https://issuer.example|" + a.order.Owner, Key: a.order.Key})
	if act := a.operation.act; act == erases || act == forgets {
		return a.purge(ctx, o, id, thinks)
	}
	seen, err := store.Inspect(ctx, id)
	if err != nil || seen.Record.State == lambdaidem.Absent {
		return errors.Join(errNothingSeen, err)
	}
	a.think(thinks)
	a.w.journal.operatorActs(a, seen.Record)
	if a.operation.act == releases {
		_, err = o.Release(ctx, seen)
		return err
	}
	_, err = o.Settle(ctx, seen, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: a.answer(seen.Record)})
	return err
}

// errNothingSeen means that the operator found no record, and did nothing.
var errNothingSeen = errors.New("there was nothing to see")

// answer returns the answer with which the operator settles a record. It has the form of a
// handler's answer.
func (a *actor) answer(rec lambdaidem.Record) []byte {
	body := fmt.Sprintf("%s/%s/%s by operator %d", a.order.Owner, a.order.Key, a.w.journal.payload(rec.Token), a.id)
	return lambdaidem.EncodeAnswer(&lambdaidem.Response{Status: http.StatusOK, Body: body + a.w.plan.large.pad()})
}

// purge purges one record. Time passes between its read and its write.
func (a *actor) purge(ctx context.Context, o *dynamostore.Operator, id string, thinks time.Duration) error {
	a.w.journal.operatorActs(a, lambdaidem.Record{ID: id})
	for _, err := range o.Purge(ctx, func(p *dynamostore.PurgeOptions) {
		p.Forget = a.operation.act == forgets
		p.Match = func(rec lambdaidem.Record) bool {
			if rec.ID == id {
				a.think(thinks)
			}
			return rec.ID == id
		}
	}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// think lets time pass before an operator acts. It does not return if the process is killed.
func (a *actor) think(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.killed:
		runtime.Goexit()
	}
}

// newDynamoDB returns a DynamoDB client that sends its requests through the given HTTP client.
func newDynamoDB(through aws.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String("http://dynamodb.simulated"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "simulated", SecretAccessKey: "simulated"}, nil
		}),
		HTTPClient: through,
	})
}

// dated returns the header of a reply. An operator's has the date by the database's clock; others
// are unchanged.
func (a *actor) dated(header http.Header) http.Header {
	if a.operation == nil || header == nil {
		return header
	}
	header = header.Clone()
	header.Set("Date", time.Now().Add(a.w.plan.operators.ahead).UTC().Format(http.TimeFormat))
	return header
}
