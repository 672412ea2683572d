// Command first measures the first request of a process, as after a cold start:
//
//	first [-samples N] [-markdown]
//
// Each sample is a new process of bench/first/function, which reaches DynamoDB Local through TLS and
// a network with a given round trip time. There are three sides, which take turns in random order:
// the AWS SDK alone, the toolkit, and the toolkit with Store.Warm. If the machine allows limits of
// processor time, the requests have the share of a small function. The init phase has a whole core,
// as on Lambda.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/command"
	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/quota"
	"github.com/lambdaidem/toolkit/bench/internal/table"
	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// The conditions under which the sides are compared.
var (
	roundTrips = []time.Duration{time.Millisecond, 30 * time.Millisecond}
	megabytes  = []int{128, 512, 0} // 0: a whole core or more
	sides      = []string{"bare", "toolkit", "warm"}
)

// The aims: upper limits for ratios of medians.
const (
	aimWarm = 1.2 // first request with Warm / later request with Warm
	aimCold = 1.0 // first request without Warm / first request of the SDK alone
)

type settings struct {
	samples  int // processes of each side under each condition
	markdown bool
}

func main() { os.Exit(command.Main("first", os.Args[1:], parseFlags, run)) }

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("first", flag.ContinueOnError)
	flags.IntVar(&s.samples, "samples", 15, "processes of each side under each condition, at least 3")
	flags.BoolVar(&s.markdown, "markdown", false, "print the table of docs/performance.md")
	err := command.Parse(flags, args, func() error {
		if s.samples < 3 {
			return fmt.Errorf("-samples is %d; want at least 3", s.samples)
		}
		return nil
	})
	return s, err
}

func run(ctx context.Context, s settings) (err error) {
	dir, err := os.MkdirTemp("", "lambdaidem-first-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f := &functions{program: filepath.Join(dir, "function"), certificate: filepath.Join(dir, "certificate.pem"), table: "first-" + rand.Text()}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-tags", "lambda.norpc", "-o", f.program, "./bench/first/function")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the function: %w\n%s", err, out)
	}
	database, err := ddblocal.Start(ctx, func(o *ddblocal.Options) { o.Benchmark = true })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Stop()) }()
	if err := dynamostore.CreateTable(ctx, database.Client(), f.table); err != nil {
		return err
	}
	sizes := slices.Clone(megabytes)
	if leave, err := quota.Limit(sizes[0]); err != nil {
		fmt.Fprintf(os.Stderr, "first: without small functions: %v\n", err)
		sizes = []int{0}
	} else if err := leave(); err != nil {
		return err
	}
	var all []comparison
	for _, roundTrip := range roundTrips {
		for _, size := range sizes {
			fmt.Fprintf(os.Stderr, "measuring %v, %s\n", roundTrip, sizeName(size))
			c, err := f.compare(ctx, database.Endpoint(), roundTrip, size, s.samples)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
	}
	t := report(all, mathrand.New(mathrand.NewPCG(1, 2)))
	if s.markdown {
		return t.Markdown(os.Stdout)
	}
	return t.Text(os.Stdout)
}

// functions starts processes of the program function.
type functions struct{ program, certificate, table string }

// times has the durations that one process measured.
type times struct{ Init, First, Later time.Duration }

// comparison has the times of all processes with one round trip time and one memory size. Each side
// has the same number of samples.
type comparison struct {
	roundTrip time.Duration
	megabytes int
	took      map[string][]times // by the name of the side
}

// compare starts the given number of processes of each side. The sides take turns.
func (f *functions) compare(ctx context.Context, endpoint string, roundTrip time.Duration, megabytes, samples int) (comparison, error) {
	c := comparison{roundTrip, megabytes, map[string][]times{}}
	far, err := newDistant(ctx, endpoint, roundTrip)
	if err != nil {
		return c, err
	}
	defer far.close()
	if err := far.writeCertificate(f.certificate); err != nil {
		return c, err
	}
	for range samples {
		for _, i := range mathrand.Perm(len(sides)) {
			side := sides[i]
			took, err := f.start(ctx, far.endpoint(), side, megabytes)
			if err != nil {
				return c, fmt.Errorf("%s: %w", side, err)
			}
			c.took[side] = append(c.took[side], took)
		}
	}
	return c, nil
}

// start starts a process, waits until the process ends, and returns what the process measured.
func (f *functions) start(ctx context.Context, endpoint, side string, megabytes int) (times, error) {
	process := exec.CommandContext(ctx, f.program, side, f.table, strconv.Itoa(megabytes))
	process.Env = []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + endpoint, "AWS_CA_BUNDLE=" + f.certificate, "AWS_REGION=eu-west-1",
		"AWS_ACCESS_KEY_ID=AKIDFIRST", "AWS_SECRET_ACCESS_KEY=SECRET", "AWS_SESSION_TOKEN=TOKEN", "AWS_EC2_METADATA_DISABLED=true",
		"GOMAXPROCS=2", // Lambda has two virtual processors in functions of up to 3,008 MB
	}
	var out, complaint bytes.Buffer
	process.Stdout, process.Stderr = &out, &complaint
	if err := process.Run(); err != nil {
		return times{}, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	var t times
	return t, json.Unmarshal(out.Bytes(), &t)
}

func (t times) first() time.Duration { return t.First }
func (t times) later() time.Duration { return t.Later }
func (t times) init() time.Duration  { return t.Init }

// quantity is one of the times that the processes of a side measured.
type quantity struct {
	side string
	of   func(times) time.Duration
}

// The quantities of the table.
var (
	sdk    = quantity{"bare", times.first}
	cold   = quantity{"toolkit", times.first}
	warm   = quantity{"warm", times.first}
	later  = quantity{"warm", times.later}
	warmed = quantity{"warm", times.init}
)

// median returns the median of a quantity. It counts sample i as often as weights[i] says, or once
// if weights is nil.
func (c *comparison) median(q quantity, weights []int) time.Duration {
	var all []time.Duration
	for i, t := range c.took[q.side] {
		n := 1
		if weights != nil {
			n = weights[i]
		}
		all = append(all, slices.Repeat([]time.Duration{q.of(t)}, n)...)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ratio estimates the quotient of the medians of a and b. Sample i of each side was measured at
// about the same time as sample i of the others, so the bootstrap draws numbers i, and takes sample
// i of both sides.
func (c *comparison) ratio(a, b quantity, random *mathrand.Rand) interval.Estimate {
	return interval.Bootstrap(len(c.took[a.side]), func(weights []int) float64 {
		return float64(c.median(a, weights)) / float64(c.median(b, weights))
	}, random)
}

// report returns a table with a row for each condition.
func report(all []comparison, random *mathrand.Rand) table.Table {
	t := table.Table{{
		"round trip", "function", "SDK: first request", "toolkit: first request", "÷ SDK's", "aim",
		"with Warm: init phase", "with Warm: first request", "÷ a later one", "aim",
	}}
	for i := range all {
		c := &all[i]
		toSDK, toLater := c.ratio(cold, sdk, random), c.ratio(warm, later, random)
		t = append(t, []string{
			c.roundTrip.String(), sizeName(c.megabytes), millis(c.median(sdk, nil)), millis(c.median(cold, nil)), short(toSDK), held(toSDK, aimCold),
			millis(c.median(warmed, nil)), millis(c.median(warm, nil)), short(toLater), held(toLater, aimWarm),
		})
	}
	return t
}

func sizeName(megabytes int) string {
	if megabytes == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%d MB", megabytes)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

func short(e interval.Estimate) string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", e.Value, e.Low, e.High)
}

func held(e interval.Estimate, aim float64) string {
	return fmt.Sprintf("≤ %.1f: %s", aim, e.AtMost(aim))
}
