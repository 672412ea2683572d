package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// The operations that are timed, in the order of the page.
const (
	opNew      = "new"
	opReplay   = "replay"
	opConflict = "conflict"
)

var operations = []string{opNew, opReplay, opConflict}

// timing is what one operation costs with one peer.
type timing struct {
	MedianUS int64   `json:"median_us"` // microseconds
	P99US    int64   `json:"p99_us"`    // microseconds
	CPUUS    int64   `json:"cpu_us"`    // processor time of the driver for one operation, in microseconds; 0 if unknown
	Requests int32   `json:"requests"`  // to DynamoDB
	Writes   float64 `json:"writes"`    // write request units that DynamoDB Local reports; a refused write counts as 1
	Reads    float64 `json:"reads"`     // read request units that DynamoDB Local reports
}

// timed is one peer in the measurement.
type timed struct {
	*stage
	process *process
	held    driver.Request // its handler runs until the end
	took    map[string][]time.Duration
	cpu     map[string]time.Duration
	units   units
}

// answerBytes is the size of the handler's answer, in bytes.
const answerBytes = 300

// timePeers measures all operations with all peers that have their records in DynamoDB. In
// each round every peer does the operation once, in a random order, one after another.
func timePeers(ctx context.Context, root string, server *ddblocal.Server, rounds int) (_ timings, err error) {
	var all []*timed
	defer func() {
		for _, t := range all {
			err = errors.Join(err, t.close())
		}
	}()
	bare := &peer{
		Name: "bare SDK (Go)", command: []string{root + "/" + built + "/bare"},
		idAttribute: "id", ttlAttribute: "expiration",
	}
	out := newTimings(peers(root), rounds)
	for _, p := range append([]*peer{bare}, peers(root)...) {
		if _, lacks := p.lacks[needsStore]; lacks {
			continue
		}
		t, err := beginTiming(ctx, p, server)
		if t != nil {
			all = append(all, t)
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	for _, op := range operations {
		fmt.Fprintf(os.Stderr, "measuring %s: %d times each\n", op, rounds)
		if err := timeOperation(all, op, rounds); err != nil {
			return out, err
		}
	}
	for _, t := range all {
		costs, err := t.count()
		if err != nil {
			return out, fmt.Errorf("%s: %w", t.peer.Name, err)
		}
		for _, op := range operations {
			one := costs[op]
			slices.Sort(t.took[op])
			one.MedianUS = t.took[op][rounds/2].Microseconds()
			one.P99US = t.took[op][rounds*99/100].Microseconds()
			one.CPUUS = t.cpu[op].Microseconds() / int64(rounds)
			out.set(op, t.peer.Name, one)
		}
	}
	return out, nil
}

// beginTiming starts a peer's driver, directly at the database, with one request whose
// handler runs until the end, and does every operation a few times.
func beginTiming(ctx context.Context, p *peer, server *ddblocal.Server) (*timed, error) {
	s, err := newStage(ctx, p, server, "timing")
	t := &timed{stage: s, held: keyed(0), took: map[string][]time.Duration{}, cpu: map[string]time.Duration{}}
	if err != nil {
		return t, err
	}
	if t.process, err = s.startAt(timedFunction, server.Endpoint()); err != nil {
		return t, err
	}
	if err := t.hold(t.process, t.held); err != nil {
		return t, err
	}
	for i := range 100 {
		for _, op := range operations {
			if _, err := t.operate(t.process, op, keyed(1_000_000+i), t.held); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

var timedFunction = function{timeout: 10 * time.Minute, refuse: true}

// keyed returns the payment with the n-th key.
func keyed(n int) driver.Request {
	return with(func(r *driver.Request) { r.Key = fmt.Sprintf("00000000-0000-4000-9000-%012d", n) })
}

func (t *timed) hold(p *process, r driver.Request) error {
	c, err := p.send(r, timedFunction.timeout, driver.Script{Status: 201, Body: []byte("held"), Hold: true})
	if err != nil {
		return err
	}
	ran, err := c.waitRun()
	if err == nil && !ran {
		err = errors.New("the handler of the request in progress did not run")
	}
	return err
}

// operate does one operation: a replay repeats an earlier new request with the same key.
func (t *timed) operate(p *process, op string, r, held driver.Request) (time.Duration, error) {
	if op == opConflict {
		r = held
	}
	body := []byte(strings.Repeat("a", answerBytes))
	c, err := p.send(r, timedFunction.timeout, driver.Script{Status: 201, Body: body})
	if err != nil {
		return 0, err
	}
	a, err := c.wait()
	if err != nil {
		return 0, err
	}
	ran := false
	select {
	case <-c.ran:
		ran = true
	default:
	}
	if refused := a.Error != "" || a.Status >= 400; ran != (op == opNew) || refused != (op == opConflict) {
		return 0, fmt.Errorf("%s: a %s request is answered %d %s (the handler ran: %v)", t.peer.Name, op, a.Status, a.Error, ran)
	}
	return c.took, nil
}

func timeOperation(all []*timed, op string, rounds int) error {
	before := map[*timed]time.Duration{}
	for _, t := range all {
		before[t] = t.process.cpu()
	}
	for round := range rounds {
		for _, i := range rand.Perm(len(all)) {
			took, err := all[i].operate(all[i].process, op, keyed(1+round), all[i].held)
			if err != nil {
				return err
			}
			all[i].took[op] = append(all[i].took[op], took)
		}
	}
	for _, t := range all {
		t.cpu[op] = t.process.cpu() - before[t]
	}
	return nil
}

// units are what DynamoDB Local has reported for the requests that passed.
type units struct {
	requests              atomic.Int32
	writes, reads, failed atomic.Int64 // thousandths of units; failed writes
}

// meter lets a request through, asks for the capacity that it consumes, and adds it up.
func (u *units) meter(c *proxy.Call) {
	u.requests.Add(1)
	var body map[string]any
	if json.Unmarshal(c.Body, &body) == nil {
		body["ReturnConsumedCapacity"] = "TOTAL"
		if with, err := json.Marshal(body); err == nil {
			c.Body = with
		}
	}
	reply, err := c.Deliver()
	if err != nil {
		c.Cut()
		return
	}
	var out struct {
		ConsumedCapacity struct{ CapacityUnits float64 }
	}
	_ = json.Unmarshal(reply.Body, &out) // an error's body has none
	switch consumed := int64(1000 * out.ConsumedCapacity.CapacityUnits); {
	case !writes[c.Operation]:
		u.reads.Add(consumed)
	case reply.Status != 200:
		u.failed.Add(1)
	default:
		u.writes.Add(consumed)
	}
	reply.Header.Del("X-Amz-Crc32") // of the reply as the database wrote it
	c.Answer(reply)
}

// count does each operation once behind a proxy, and returns what it cost.
func (t *timed) count() (map[string]timing, error) {
	t.faults.every(t.units.meter)
	t.faults.reads.Store(true)
	p, err := t.start(timedFunction)
	if err != nil {
		return nil, err
	}
	held := keyed(3_000_000)
	if err := t.hold(p, held); err != nil {
		return nil, err
	}
	costs := map[string]timing{}
	for _, op := range operations {
		u := &t.units
		requests, written, read, failed := u.requests.Load(), u.writes.Load(), u.reads.Load(), u.failed.Load()
		if _, err := t.operate(p, op, keyed(2_000_000), held); err != nil {
			return nil, err
		}
		costs[op] = timing{
			Requests: u.requests.Load() - requests,
			Writes:   float64(u.writes.Load()-written)/1000 + float64(u.failed.Load()-failed),
			Reads:    float64(u.reads.Load()-read) / 1000,
		}
	}
	return costs, nil
}

// cpu returns the processor time that the process has used, or 0 where /proc has none. Linux
// counts it in hundredths of a second (proc(5), utime and stime).
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.command.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100)
}
