package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/command"
)

// processArgument is the only argument of a process that startProcess has started.
const processArgument = "process"

// isProcess reports whether startProcess has started this program.
func isProcess() bool { return len(os.Args) == 2 && os.Args[1] == processArgument }

// runProcess runs a process to its end, and returns the status with which it must exit.
func runProcess() int {
	return command.Run("storm", func(ctx context.Context) error { return serve(ctx, os.Stdin, os.Stdout) })
}

// task is the first JSON text that a process reads from its standard input.
type task struct {
	Mode            string // the name of a mode
	Endpoint, Table string // where the records are
	Key             string // the idempotency key of all requests
	settings
}

// wave is each further JSON text on the standard input: requests to send at the same time.
type wave struct {
	Requests     int
	IncludeFirst bool      // one request is the client's first, which never carries the header of a retry
	At           time.Time // when to send the requests
}

// measured is what a process writes to its standard output after each wave, as JSON.
type measured struct {
	Answers        []answers
	Runs           int            // how often the handler ran in this wave
	RecordID       string         // the id of the record; empty if the handler has not run
	Calls          []call         // every request to DynamoDB
	MostCalls      int            // the maximum number of requests to DynamoDB that one duplicate sent
	MostSoon       int            // like MostCalls, but all requests that a duplicate sent later than HandlerTakes after its first one count as one
	DuplicateCalls map[string]int // the number of requests to DynamoDB that all duplicates sent, by operation
	Last           time.Duration  // from wave.At to the last response
	MostOpen       int            // the maximum number of open connections since the process began
	PeakMemory     int            // bytes, since the process began; 0 if unknown
	StoreErrors    map[string]int // failed calls of the store, by reason
}

// serve reads a task from in and initializes the function, as Lambda does before the first
// invocation. Then it writes a line to out, and carries out waves until in ends.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	input, output := json.NewDecoder(in), json.NewEncoder(out)
	var t task
	if err := input.Decode(&t); err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	f, err := newFunction(ctx, t)
	if err != nil {
		return err
	}
	if err := output.Encode("ready"); err != nil {
		return err
	}
	for {
		var w wave
		if err := input.Decode(&w); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a wave: %w", err)
		}
		if err := output.Encode(f.storm(ctx, w)); err != nil {
			return err
		}
	}
}
