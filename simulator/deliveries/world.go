package deliveries

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tables: one for the records, and one for the effects, with an item for each message.
const (
	records = "idempotency"
	effects = "effects"
)

// Source is a kind of event source.
type Source string

// The kinds of sources. SNS and EventBridge deliver like Kinesis with batches of one record.
const (
	Standard Source = "SQS"
	FIFO     Source = "SQS FIFO"
	Kinesis  Source = "Kinesis"
	DynamoDB Source = "DynamoDB Streams"
	Kafka    Source = "Kafka"
)

// plan has the parameters of one run. The float64 fields are shares, from 0 to 1.
type plan struct {
	Source      Source
	Messages    int
	Groups      int
	Consumers   int // how many poll the queue at the same time
	Batch       int
	Concurrency int
	StopBatch   bool
	WholeBatch  bool
	Hold        bool
	Optimistic  bool
	Derived     bool // keys are derived from the message by BatchOptions.Key
	Timeout     time.Duration
	Visibility  time.Duration
	MaxReceive  int     // a message that was received more often is given up
	Lossy       float64 // requests that meet a fault
	Kills       float64 // invocations whose process is killed at a random moment
	Bad         float64 // runs of the handler that fail
	Slow        float64 // runs of the handler that take long
	Poison      float64 // messages whose handler always fails
	Twice       float64 // messages or batches that are delivered twice
	Bisects     bool    // a failed batch of a stream is split
}

func newPlan(r *rand.Rand) plan {
	chance := func(c float64) bool { return r.Float64() < c }
	some := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	p := plan{
		Source:   []Source{Standard, FIFO, Kinesis, DynamoDB}[r.IntN(4)],
		Messages: 4 + r.IntN(16), Groups: 1 + r.IntN(4), Consumers: 1 + r.IntN(3), Batch: 1 + r.IntN(8),
		Timeout: time.Duration(3+r.IntN(6)) * time.Second,
		Lossy:   some(0, 0.05, 0.2), Kills: some(0, 0.1, 0.3), Bad: some(0, 0.1, 0.3), Slow: some(0, 0.1, 0.3), Poison: some(0, 0, 0.15), Twice: some(0, 0.1, 0.4),
	}
	p.Concurrency = []int{1, 1, 2, 5}[r.IntN(4)]
	p.StopBatch, p.WholeBatch, p.Hold, p.Derived, p.Bisects = chance(0.2), chance(0.15), chance(0.2), chance(0.3), chance(0.5)
	p.Optimistic = !p.Hold && chance(0.2)
	p.Visibility = p.Timeout * time.Duration(1+r.IntN(6))
	if chance(0.1) { // against AWS's advice: a message is visible again while its attempt runs
		p.Visibility = p.Timeout / 2
	}
	p.MaxReceive = 5 + r.IntN(40)
	return p
}

// message is a message, and what became of it.
type message struct {
	n      int // the number of the message in the order of sending, from 0 on
	group  string
	poison bool

	done    bool // the source counts the message as done
	givenUp bool // the source gave the message up
	effects int  // how often the effect was written
}

func (m *message) id() string { return fmt.Sprintf("m-%03d", m.n) }

// Mutation is a deliberate mistake, which the checks must find.
type Mutation struct {
	Name string
	// Source is the source of every run. Default: the one that the seed draws.
	Source Source
	// Guard changes the guard's options.
	Guard func(*lambdaidem.Options)
	// Unordered hides the groups of a queue or a stream from the guard.
	Unordered bool
	// Unguarded runs handlers without a guard around them.
	Unguarded bool
	// Silent drops the last failure of each report.
	Silent bool
	// Fresh gives each delivery of a message another ID.
	Fresh bool
	// Deaf takes each report of failures for a success, as Lambda does for a mapping without
	// ReportBatchItemFailures.
	Deaf bool
}

// world is one run.
type world struct {
	plan plan
	mut  *Mutation
	db   *memdynamo.DB
	all  []*message

	mu     sync.Mutex
	rng    *rand.Rand // decides what the sources do
	healed bool       // no more faults
	order  map[string][]int
	report Report
	number uint64 // the number of processes so far
	late   sync.WaitGroup
}

// Report is the result of a run.
type Report struct {
	Plan                                      string
	Wrong                                     []string
	Deliveries, Runs, Effects, GivenUp, Kills int
	Faults                                    map[string]int
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Wrong = append(w.report.Wrong, fmt.Sprintf(format, args...))
}

// chance returns true in the given share of its calls, at random. It returns false once the world
// is healed.
func (w *world) chance(share float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.healed && w.rng.Float64() < share
}

// Run delivers the messages of one seed, and checks the run. It must be called in a synctest
// bubble. mut may be nil.
func Run(seed uint64, mut *Mutation) Report {
	if mut == nil {
		mut = &Mutation{}
	}
	r := rand.New(rand.NewPCG(seed, 0xde11ec))
	w := &world{plan: newPlan(r), mut: mut, db: memdynamo.New(time.Now), rng: r, order: map[string][]int{}, report: Report{Faults: map[string]int{}}}
	if w.plan.Source == Kinesis && seed%2 == 0 { // nothing is drawn for this, so the plans of other seeds stay as they were
		w.plan.Source = Kafka
	}
	if mut.Source != "" {
		w.plan.Source = mut.Source
	}
	w.report.Plan = fmt.Sprintf("%+v", w.plan)
	for _, table := range []string{records, effects} {
		w.mustServe("CreateTable", fmt.Sprintf(`{"TableName":%q,"BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}`, table))
	}
	for n := range w.plan.Messages {
		m := &message{n: n, group: fmt.Sprintf("g-%d", r.IntN(w.plan.Groups)), poison: r.Float64() < w.plan.Poison}
		w.all = append(w.all, m)
	}
	w.db.OnWrite(w.wrote)
	heal := time.AfterFunc(10*time.Minute, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.healed = true
	})
	defer heal.Stop()
	switch w.plan.Source {
	case Standard, FIFO:
		w.consumeQueue()
	default:
		w.consumeStream()
	}
	w.late.Wait()
	w.judge()
	return w.report
}

func (w *world) mustServe(op, body string) {
	if status, _, out := w.db.Serve(op, []byte(body)); status != 200 {
		panic(fmt.Sprintf("deliveries: %s: %s", op, out))
	}
}

// wrote counts an effect that the database has stored.
func (w *world) wrote(write memdynamo.Write) {
	if write.Table != effects {
		return
	}
	text, err := json.Marshal(write.Key["id"])
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.all {
		if strings.Contains(string(text), m.id()) {
			m.effects++
			w.report.Effects++
			w.order[m.group] = append(w.order[m.group], m.n)
		}
	}
}

// hasEffect reports whether the database has a message's effect.
func (w *world) hasEffect(m *message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return m.effects > 0
}
