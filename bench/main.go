// Command bench measures what the toolkit costs. It prints ratios, and compares them with aims:
//
//	bench [-quick] [-samples N] [-only sdk|guard] [-processors N] [-markdown]
//	bench -plot
//
// The first part measures the whole guard, from event to response, with dynamostore and default
// options. It compares the guard with the least code that one could write by hand, which sends the
// same requests with the bare AWS SDK and its default options. The two take turns with one DynamoDB
// Local; see AWS_ENDPOINT_URL_DYNAMODB. So does a lower limit that sends the same requests as
// ready-made text. If the system allows it, some measurements are repeated with the processor time
// of small functions. The first part also stores and replays a large answer. The program keeps to
// one processor for all of this, which is as much as a function of up to 1,769 MB has, and leaves
// the other processors to the database, because functions don't share any with DynamoDB.
//
// The second part measures the guard with a store in memory, for growing bodies and for bodies that
// are as expensive as possible, and replays from the cache.
//
// With -plot, the program measures nothing. It draws the ratios that docs/performance.md has.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/command"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// maxAtOnce is the number of concurrent operations in the measurements with many at once.
const maxAtOnce = 64

// records is the number of different records for the replays, and of those for the conflicts.
const records = 128

// minSamples is the minimum number of samples for a meaningful 99th percentile.
const minSamples = 1000

// deadline is the time until the deadline of every operation, like that of a Lambda invocation.
// Leases end soon after it, so it must be longer than the whole measurement.
const deadline = 6 * time.Hour

type settings struct {
	samples    int
	blocks     int // blocks of each size, when the guard is measured alone
	runs       int // runs with large answers, and of the benchmarks of package lambdaidem
	parts      string
	scenario   string // name of the only scenario to measure; "" for all
	processors int    // processors to keep to against the SDK; 0 shares all of them with the database
	markdown   bool
	plot       bool // draw the published ratios and measure nothing
}

func main() { os.Exit(command.Main("bench", os.Args[1:], parseFlags, run)) }

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "a tenth of the samples: to see that it works, not for figures")
	flags.IntVar(&s.samples, "samples", 10_000, "operations of each side in each scenario against the SDK, at least 1000")
	flags.StringVar(&s.parts, "only", "", "`part` to measure: sdk or guard (default both)")
	flags.StringVar(&s.scenario, "scenario", "", "the one `name` of a scenario against the SDK to measure, or messages, or small functions, without the rest (default all)")
	flags.IntVar(&s.processors, "processors", 1, "processors that the measurements against the SDK keep to, on Linux; 0: all, which the database uses too")
	flags.BoolVar(&s.markdown, "markdown", false, "print the tables of docs/performance.md")
	flags.BoolVar(&s.plot, "plot", false, "measure nothing, and draw "+plotFile+" from the table in "+pageFile)
	err := command.Parse(flags, args, func() error {
		switch {
		case s.samples < minSamples:
			return fmt.Errorf("-samples is %d; a 99th percentile wants at least %d", s.samples, minSamples)
		case s.processors < 0:
			return fmt.Errorf("-processors is %d; it can't be less than 0", s.processors)
		case s.parts != "" && s.parts != "sdk" && s.parts != "guard":
			return fmt.Errorf("-only is %q; it must be sdk or guard", s.parts)
		case s.scenario != "" && s.scenario != messagesScenario && s.scenario != smallScenario && !slices.ContainsFunc(scenarios, func(one scenario) bool { return one.name == s.scenario }):
			return fmt.Errorf("-scenario is %q; there is no such one", s.scenario)
		}
		return nil
	})
	s.blocks, s.runs = 60, 9
	if *quick {
		s.samples, s.blocks, s.runs = min(s.samples, minSamples), 12, 5
	}
	return s, err
}

func run(ctx context.Context, s settings) (err error) {
	if s.plot {
		return writePlot()
	}
	// Use a new seed for each run, so that an order which favors one side does not recur.
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	var all results
	if s.parts != "guard" {
		server, err := ddblocal.Start(ctx, func(o *ddblocal.Options) { o.Benchmark = true })
		if err != nil {
			return err
		}
		err = all.measureSDK(ctx, server, s, random)
		if err = errors.Join(err, server.Stop()); err != nil {
			return err
		}
	}
	if s.parts != "sdk" && s.scenario == "" {
		if all.guard, err = measureGuard(ctx, s.blocks, random); err != nil {
			return err
		}
		if all.cached, err = measureCache(ctx, s.runs, random); err != nil {
			return err
		}
		if all.engine, err = measureEngine(ctx, s.runs, random); err != nil {
			return err
		}
	}
	if s.markdown {
		all.printMarkdown(os.Stdout)
	} else {
		all.print(os.Stdout)
	}
	return nil
}

// measureSDK measures every scenario, one operation at a time and many at once. It also measures
// small functions, large answers and messages.
func (r *results) measureSDK(ctx context.Context, server *ddblocal.Server, s settings, random *rand.Rand) (err error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	rig, err := newRig(ctx, server.Config(), records)
	if err != nil {
		return err
	}
	defer rig.close()
	leave := r.keepTo(s.processors)
	defer func() { err = errors.Join(err, leave()) }()
	for _, atOnce := range []int{1, maxAtOnce} {
		for _, one := range scenarios {
			if one.alone && atOnce > 1 || s.scenario != "" && one.name != s.scenario {
				continue
			}
			samples := max(s.samples/max(one.oneIn, 1), minSamples)
			progress("%s, %d at once: %d times each side", one.name, atOnce, samples)
			c, err := rig.compare(ctx, one, planFor(atOnce, samples), random)
			if err != nil {
				return err
			}
			r.comparisons = append(r.comparisons, c)
		}
	}
	if s.scenario == "" || s.scenario == smallScenario {
		if r.small, r.noQuota, err = rig.measureSmall(ctx, random); err != nil {
			return err
		}
	}
	if s.scenario == "" {
		if r.large, err = rig.measureLarge(ctx, largeAnswer, s.runs); err != nil {
			return err
		}
	}
	if s.scenario == "" || s.scenario == messagesScenario {
		r.messages, err = rig.measureMessages(ctx, max(2*s.runs, s.samples/messagesABatch), random)
	}
	return err
}

// keepTo keeps the process on n processors until leave is called. 0 means all of them. If the
// process can't be kept on n processors, r.shared has the reason.
func (r *results) keepTo(n int) (leave func() error) {
	if r.processors = n; n > 0 {
		leave, r.shared = onProcessors(n)
	}
	if leave == nil {
		leave = func() error { return nil }
	}
	return leave
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "measuring "+format+"\n", args...)
}
