package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// The operations that are timed.
const (
	opNew      = "new"
	opReplay   = "replay"
	opConflict = "conflict"
)

// operations has the operations in the order of the page.
var operations = []string{opNew, opReplay, opConflict}

// timing has the costs of one operation with one peer.
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
	held    driver.Request             // a request whose handler runs until the process ends
	took    map[string][]time.Duration // durations by operation, one for each round
	cpu     map[string]time.Duration   // processor time by operation, for all rounds together
	units   units
}

// answerBytes is the size of the handler's answer, in bytes.
const answerBytes = 300

// timePeers times all operations with the bare SDK and with all peers that have their records in
// DynamoDB. In each round, the peers perform the operation once each, one after another, in a random
// order.
func timePeers(ctx context.Context, root string, server *ddblocal.Server, rounds int) (_ timings, err error) {
	var all []*timed
	defer func() {
		for _, t := range all {
			err = errors.Join(err, t.close())
		}
	}()
	bare := &peer{
		Name: "bare SDK (Go)", command: []string{filepath.Join(root, built, "bare")},
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
			median, p99 := quantiles(t.took[op])
			one.MedianUS, one.P99US = median.Microseconds(), p99.Microseconds()
			one.CPUUS = t.cpu[op].Microseconds() / int64(rounds)
			out.set(op, t.peer.Name, one)
		}
	}
	return out, nil
}

// quantiles sorts durations, and returns their median and their 99th percentile.
func quantiles(took []time.Duration) (median, p99 time.Duration) {
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

// beginTiming starts a peer's driver without the proxy, sends the request whose handler runs until
// the process ends, and warms the driver up: it performs every operation 100 times.
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

// hold sends a request, and returns when its handler runs. The handler never returns.
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

// operate performs one operation, and returns how long the guarded call took in the driver. New
// requests and replays send r; a replay must follow a new request with the same r. A conflict sends
// held, whose handler is running. operate returns an error if the peer treats the request as
// another operation.
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

// timeOperation performs an operation in all rounds, and adds the results to the peers.
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

// count performs each operation once, behind the proxy, and returns the requests and the units of
// each operation.
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

// cpu returns the processor time that the process has used, in steps of a hundredth of a second
// (utime and stime in proc(5)), or 0 if the system has no /proc.
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
