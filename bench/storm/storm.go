package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// settings are the same for all storms of a run.
type settings struct {
	Requests       int           // in each wave
	HandlerTakes   time.Duration // how long the handler works
	AttemptTimeout time.Duration // dynamostore.Options.AttemptTimeout
	SDKClient      bool          // use the SDK's HTTP client instead of dynamostore.HTTPClient
}

// usual returns the settings of the documentation's tables, except for the number of requests.
// AttemptTimeout is longer than its default of 2 s, because it includes the wait for a connection,
// and DynamoDB Local needs seconds for thousands of requests.
func usual(requests int) settings {
	return settings{Requests: requests, HandlerTakes: 200 * time.Millisecond, AttemptTimeout: time.Minute}
}

// storm is the result of one storm: two waves of requests with one key.
type storm struct {
	mode      mode
	settings  settings
	processes int
	during    []measured // of each process: the first wave, one of whose requests runs the handler
	after     []measured // of each process: the second wave, sent when the first has all responses
	units     units
}

// lab is a table in a database, in which storms take place.
type lab struct {
	database *ddblocal.Server
	table    string
}

func newLab(ctx context.Context, database *ddblocal.Server) (*lab, error) {
	l := &lab{database: database, table: "storm-" + rand.Text()}
	return l, dynamostore.CreateTable(ctx, database.Client(), l.table)
}

// storm carries out a storm with a new key. It returns an error if the storm does not pass the
// audit; see storm.audit.
func (l *lab) storm(ctx context.Context, m mode, processes int, s settings) (storm, error) {
	result := storm{mode: m, settings: s, processes: processes}
	t := task{Mode: m.name, Endpoint: l.database.Endpoint(), Table: l.table, Key: rand.Text(), settings: s}
	var err error
	if result.during, result.after, err = waves(ctx, t, processes); err != nil {
		return result, err
	}
	if err := result.audit(); err != nil {
		return result, err
	}
	result.units, err = l.units(ctx, result.recordID())
	return result, err
}

// waves starts processes, lets them send two waves of requests, and stops them.
func waves(ctx context.Context, t task, processes int) (during, after []measured, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []*process
	defer func() {
		if err != nil {
			cancel() // kill the processes: they may not notice the end of their input
		}
		for _, p := range all {
			err = errors.Join(err, p.stop())
		}
	}()
	for range processes {
		p, err := startProcess(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		var ready string
		if err := p.output.Decode(&ready); err != nil {
			return nil, nil, fmt.Errorf("a process of the storm did not start: %w", err)
		}
	}
	if during, err = send(all, t.Requests, true); err != nil {
		return nil, nil, err
	}
	after, err = send(all, t.Requests, false)
	return during, after, err
}

// send sends the requests of a wave, distributed among the processes, and returns the results.
func send(all []*process, requests int, includeFirst bool) ([]measured, error) {
	w := wave{At: time.Now().Add(time.Duration(100+requests/20) * time.Millisecond)} // time to prepare the goroutines
	for i, p := range all {
		w.Requests = requests / len(all)
		if i < requests%len(all) {
			w.Requests++
		}
		w.IncludeFirst = includeFirst && i == 0
		if err := p.input.Encode(w); err != nil {
			return nil, fmt.Errorf("begin a wave: %w", err)
		}
	}
	results := make([]measured, len(all))
	for i, p := range all {
		if err := p.output.Decode(&results[i]); err != nil {
			return nil, fmt.Errorf("read the result of a wave: %w", err)
		}
	}
	return results, nil
}

// recordID returns the id of the record. Only the process that ran the handler knows the id.
func (s *storm) recordID() string {
	for _, m := range s.during {
		if m.RecordID != "" {
			return m.RecordID
		}
	}
	return ""
}

// process is a running process that carries out waves; see serve.
type process struct {
	command   *exec.Cmd
	stdin     io.Closer
	input     *json.Encoder
	output    *json.Decoder
	complaint bytes.Buffer // the standard error of the process
}

// startProcess runs this program again, as a process of a storm.
func startProcess(ctx context.Context, t task) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, program, processArgument)}
	p.command.Stderr = &p.complaint
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.input, p.output = in, json.NewEncoder(in), json.NewDecoder(out)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	return p, p.input.Encode(t)
}

// stop ends the process, and returns an error if the process failed.
func (p *process) stop() error {
	_ = p.stdin.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("a process of the storm: %w: %s", err, strings.TrimSpace(p.complaint.String()))
	}
	return nil
}
