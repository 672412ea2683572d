package simulator

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

const table = "idempotency"

// world is one run: the database, the network, the processes, and the journal of what happened. It
// must live in a synctest bubble. The mutex guards everything that several goroutines use. Only
// the goroutine in loop makes decisions, while all other goroutines are blocked.
type world struct {
	plan plan
	rng  *rand.Rand
	seed uint64
	born time.Time
	dbs  []*memdynamo.DB // one, or one for each Region that has its own copy
	// functions is the DynamoDB client of all processes but the operators'. They share it because the
	// first store of a client takes longer to make than the next ones.
	functions *dynamodb.Client
	mut       *Mutation

	mu      sync.Mutex
	inbox   []*request // sent, and not yet dispatched
	journal *journal

	wake      chan struct{}
	agenda    agenda
	processes []*process // those that serve several invocations; under mu
	serving   *request   // the request that the database serves now
	healed    bool       // the faults have ended
	global    *global    // the Regions; nil if there is only one
	tree      *tree      // makes the decisions instead of chance; nil in a run by seed

	unfinished map[string]*request // transactions that DynamoDB has not finished yet, by token
}

// mustServe sends a request to every database. It panics if one fails.
func (w *world) mustServe(op, body string) {
	for _, db := range w.dbs {
		if status, _, out := db.Serve(op, []byte(body)); status != http.StatusOK {
			panic(fmt.Sprintf("simulator: %s: %s", op, out))
		}
	}
}

// tableRequests are the requests that create the table.
var tableRequests = []struct{ op, body string }{
	{"CreateTable", createTable(table)},
	{"UpdateTimeToLive", `{"TableName":"` + table + `","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expiration"}}`},
}

// createTable returns the request that creates a table with the key id.
func createTable(name string) string {
	return `{"TableName":"` + name + `","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`
}

func newWorld(seed uint64, p *plan, mut *Mutation) *world {
	r := rand.New(rand.NewPCG(seed, 0x1de3907e47))
	w := &world{rng: r, seed: seed, born: time.Now(), wake: make(chan struct{}, 1), mut: mut, unfinished: map[string]*request{}}
	if p == nil {
		drawn := drawPlan(seed, r)
		if mut != nil && mut.Plan != nil {
			mut.Plan(&drawn)
		}
		p = &drawn
	}
	w.plan = *p
	w.functions = newDynamoDB(ofInvocation{})
	w.journal = newJournal(w)
	w.dbs = []*memdynamo.DB{memdynamo.New(time.Now)}
	if w.plan.regions.mode == "" {
		for _, r := range tableRequests {
			w.mustServe(r.op, r.body)
		}
	} else {
		w.openRegions()
	}
	if w.plan.effects.enlist {
		w.openAccounts()
	}
	if w.plan.inner {
		w.openInner()
	}
	for i, db := range w.dbs {
		db.OnWrite(w.journal.wrote)
		if w.global != nil {
			db.OnWrite(func(write memdynamo.Write) { w.global.wrote(i, write) })
		}
	}
	return w
}

// drawPlan draws the plan of a seed, except for Regions.
func drawPlan(seed uint64, r *rand.Rand) plan {
	p := newPlan(r)
	newEffects(seed, &p)
	newSteps(seed, &p)
	newInner(seed, &p)
	newLarge(seed, &p)
	newOperators(seed, &p)
	newLeaseIndex(seed, &p)
	newDelays(seed, &p)
	newDeployments(seed, &p)
	newOutage(seed, &p)
	newLookups(seed, &p)
	return p
}

// afterFunc has the world call do after d.
func (w *world) afterFunc(d time.Duration, do func()) {
	w.agenda.seq++
	heap.Push(&w.agenda, scheduledCall{time.Now().Add(d), w.agenda.seq, do})
}

// randomMillis returns a random duration of up to n milliseconds, in whole nanoseconds, so that
// events don't happen at the same time.
func (w *world) randomMillis(n int) time.Duration {
	return 1 + time.Duration(w.rng.Int64N(int64(n)*int64(time.Millisecond)))
}

// notify tells loop that there is a new request.
func (w *world) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// runUntil runs the world until all groups are done.
func (w *world) runUntil(groups ...*sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		for _, g := range groups {
			g.Wait()
		}
		close(done)
	}()
	w.loop(done)
}

// loop runs the world until done is closed: it dispatches requests and calls what the agenda has.
func (w *world) loop(done <-chan struct{}) {
	for {
		synctest.Wait()
		if w.tree != nil {
			select {
			case <-done: // a tree ends here, whether or not notify was called
				return
			default:
			}
			if w.branch() {
				continue
			}
			select {
			case <-w.wake: // branch has seen the request; now time passes
			default:
			}
		}
		w.dispatch()
		var timer <-chan time.Time
		if w.agenda.Len() > 0 {
			next := w.agenda.heap[0]
			if d := time.Until(next.at); d > 0 {
				timer = time.After(d)
			} else {
				heap.Pop(&w.agenda)
				next.do()
				continue
			}
		}
		select {
		case <-w.wake:
		case <-timer:
		case <-done:
			return
		}
	}
}

// settle does everything on the agenda, so that everything on the wire arrives.
func (w *world) settle() {
	for w.agenda.Len() > 0 {
		next := heap.Pop(&w.agenda).(scheduledCall)
		if d := time.Until(next.at); d > 0 {
			time.Sleep(d)
		}
		next.do()
		synctest.Wait()
		w.dispatch()
	}
}

// sweep lets TTL delete some expired items at random times, at least every 20 minutes.
func (w *world) sweep() {
	w.afterFunc(min(w.plan.paced(w.randomMillis(10_000)), w.randomMillis(20*60_000)), func() {
		for i, db := range w.dbs {
			for _, key := range db.Expired(table) {
				if w.rng.IntN(2) == 0 && w.mayExpire(i, key) {
					db.DeleteExpired(table, key)
				}
			}
		}
		if !w.healed {
			w.sweep()
		}
	})
}

// heal ends all faults, and waits until everything that was delayed has arrived and every lease is
// over.
func (w *world) heal() {
	w.mu.Lock()
	w.healed = true
	w.mu.Unlock()
	w.settle()
	if w.global != nil {
		w.global.settled()
	}
	if w.plan.effects.enlist {
		w.deposit(wealth) // so that the transfers of the probe can be paid
	}
	if w.plan.operators.forget {
		time.Sleep(signatureLife + 2*w.plan.maxSkew) // until the forgotten records have expired
	}
	time.Sleep(w.plan.timeout + w.plan.maxSkew + w.plan.skew + time.Second)
	synctest.Wait()
}

// isHealed reports whether the faults have ended.
func (w *world) isHealed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healed
}
