// Command storm measures storms of duplicates: thousands of requests with one idempotency key at
// the same time.
//
//	storm [-requests N] [-processes N,N] [-repeat N] [-timeout D] [-sdk-client] [-markdown | -write]
//
// The requests of a storm are distributed among processes. Each process has a guard of its own, and
// all of them use one table of DynamoDB Local. A storm has two waves of requests. The requests of
// the first wave are sent at the same time, while no record exists; those of the second wave are
// sent at the same time after all requests of the first one have a response. There is a storm for
// each way in which a guard can treat duplicates. With -write, the program writes its tables into
// docs/performance.md.
//
// The program fails unless the handler runs exactly once, and each request receives the handler's
// answer, a replay of that answer, or, while the handler runs, a correct 409. It also fails if a
// duplicate sends more requests to DynamoDB than its guard's options allow.
//
// A process of a storm handles thousands of requests at a time. On Lambda, only functions on Lambda
// Managed Instances handle more than one invocation at a time in a process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/command"
	"github.com/lambdaidem/toolkit/bench/internal/table"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

const page = "docs/performance.md"

// flags has the values of the command line's flags.
type flags struct {
	settings  settings
	processes []int
	repeat    int
	markdown  bool
	write     bool
}

func main() {
	if isProcess() {
		os.Exit(runProcess())
	}
	os.Exit(command.Main("storm", os.Args[1:], parseFlags, run))
}

func parseFlags(args []string) (flags, error) {
	f := flags{settings: usual(10_000)}
	set := flag.NewFlagSet("storm", flag.ContinueOnError)
	set.IntVar(&f.settings.Requests, "requests", f.settings.Requests, "requests of a wave")
	set.DurationVar(&f.settings.AttemptTimeout, "timeout", f.settings.AttemptTimeout, "AttemptTimeout of the store; its default is 2s")
	set.BoolVar(&f.settings.SDKClient, "sdk-client", false, "use the SDK's HTTP client instead of dynamostore.HTTPClient")
	processes := set.String("processes", "1,16", "numbers of processes, with commas")
	set.IntVar(&f.repeat, "repeat", 3, "how often each storm is repeated")
	set.BoolVar(&f.markdown, "markdown", false, "print the tables of "+page)
	set.BoolVar(&f.write, "write", false, "write the tables into "+page)
	err := command.Parse(set, args, func() error {
		if f.settings.Requests < 2 || f.repeat < 1 {
			return fmt.Errorf("-requests is %d (at least 2), -repeat is %d (at least 1)", f.settings.Requests, f.repeat)
		}
		for text := range strings.SplitSeq(*processes, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > f.settings.Requests {
				return fmt.Errorf("-processes is %q; want numbers from 1 to -requests, with commas", *processes)
			}
			f.processes = append(f.processes, n)
		}
		return nil
	})
	return f, err
}

func run(ctx context.Context, f flags) (err error) {
	load := loadAverage()
	database, err := ddblocal.Start(ctx, func(o *ddblocal.Options) { o.Benchmark = true })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Stop()) }()
	l, err := newLab(ctx, database)
	if err != nil {
		return err
	}
	// Warm DynamoDB Local up: its Java code is compiled during the first thousands of requests.
	if _, err := l.storm(ctx, modes[0], 1, usual(10_000)); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	var all []repeated
	for _, processes := range f.processes {
		for _, m := range modes {
			fmt.Fprintf(os.Stderr, "measuring: %s, processes: %d\n", m.name, processes)
			r, err := l.repeat(ctx, m, processes, f)
			if err != nil {
				return err
			}
			all = append(all, r)
		}
	}
	return f.report(all, load)
}

func (l *lab) repeat(ctx context.Context, m mode, processes int, f flags) (repeated, error) {
	var r repeated
	for range f.repeat {
		s, err := l.storm(ctx, m, processes, f.settings)
		if err != nil {
			return nil, err
		}
		r = append(r, s)
	}
	r.sort()
	return r, nil
}

func (f flags) report(all []repeated, load string) error {
	text := markdown(all, f, load, time.Now())
	switch {
	case f.write:
		return table.InsertFile(page, "storm", text)
	case f.markdown:
		fmt.Print(text)
		return nil
	}
	if err := answersTable(all).Text(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	return costsTable(all).Text(os.Stdout)
}
