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

// The tables: of the records, and of the effects, an item for each message.
const (
	records = "idempotency"
	effects = "effects"
)

// Source is a kind of source.
type Source string

// The kinds. They stand for all of V2's: SNS and EventBridge are Kinesis with one
// record a batch, as far as deliveries go.
const (
	Standard Source = "SQS"
	FIFO     Source = "SQS FIFO"
	Kinesis  Source = "Kinesis"
	DynamoDB Source = "DynamoDB Streams"
	Kafka    Source = "Kafka"
)

// plan is the character of one run.
type plan struct {
	Source      Source
	Messages    int
	Groups      int
	Consumers   int // that poll a queue at a time
	Batch       int
	Concurrency int
	StopBatch   bool
	WholeBatch  bool
	Hold        bool
	Optimistic  bool
	Derived     bool // keys by a function of the message
	Timeout     time.Duration
	Visibility  time.Duration
	MaxReceive  int     // then a message is given up
	Lossy       float64 // how many requests meet a fault
	Kills       float64 // how many invocations are killed at some moment
	Bad         float64 // how many runs of a handler fail
	Slow        float64 // how many take long
	Poison      float64 // how many messages never succeed
	Twice       float64 // how many deliveries are doubled
	Bisects     bool    // a stream's failed batch is split
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
	if chance(0.1) { // against the advice: a message comes back while its attempt runs
		p.Visibility = p.Timeout / 2
	}
	p.MaxReceive = 5 + r.IntN(40)
	return p
}

// message is one message on its way.
type message struct {
	n      int // its place in the order of sending
	group  string
	poison bool

	done    bool // the source was told so
	givenUp bool // the source gave it up
	effects int  // that were written
}

func (m *message) id() string { return fmt.Sprintf("m-%03d", m.n) }

// Mutation is a deliberate mistake, which a run must find.
type Mutation struct {
	Name string
	// Source is that of every run. Default: the one that the seed draws.
	Source Source
	// Guard changes the guard's options, Batch whether order and reports are as they
	// should be.
	Guard func(*lambdaidem.Options)
	// Unordered has a queue's or a stream's order forgotten.
	Unordered bool
	// Unguarded runs handlers without a guard around them.
	Unguarded bool
	// Silent drops the last failure of each report.
	Silent bool
	// Fresh gives each delivery an id of its own.
	Fresh bool
	// Deaf takes each list of failures for a success, as Lambda does for a mapping
	// without ReportBatchItemFailures.
	Deaf bool
}

// world is one run.
type world struct {
	plan plan
	mut  *Mutation
	db   *memdynamo.DB
	all  []*message

	mu     sync.Mutex
	rng    *rand.Rand // of what the sources do
	healed bool       // no more faults
	order  map[string][]int
	report Report
	number uint64 // of processes
	late   sync.WaitGroup
}

// Report is what came of a run.
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

// chance draws whether something happens that does so in a share of cases. Faults
// end when the world is healed.
func (w *world) chance(share float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.healed && w.rng.Float64() < share
}

// Run delivers the messages of one seed. It must be called in a synctest bubble. mut
// may be nil.
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

// wrote counts an effect when the database has it.
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

// hasEffect tells whether the database has a message's effect.
func (w *world) hasEffect(m *message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return m.effects > 0
}
