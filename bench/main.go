// Command bench measures what the toolkit costs. It prints ratios and the aims
// that they are held against:
//
//	bench [-quick] [-samples N] [-only sdk|guard] [-processors N] [-markdown]
//	bench -plot
//
// Its first part holds the whole guard, from event to response, over
// dynamostore with default options against the least that could be written by
// hand: the bare AWS SDK with default options, sending the same requests. Both
// talk to one DynamoDB Local, in turns; see AWS_ENDPOINT_URL_DYNAMODB. So does the
// limit, the same requests as ready made text. Where it may, it repeats some of that
// with the processor time of small functions. It stores and replays a large answer
// too. All of this keeps to one processor, which is as much as a function of up to
// 1,769 MB has, and leaves the others to the database: functions share none with
// DynamoDB. Its second part measures the guard over a store in memory, with growing
// bodies and with bodies made to be dear, and a replay from the cache.
//
// With -plot, it measures nothing, and draws the ratios that docs/performance.md has.
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

// maxAtOnce is how many operations run at once where it is more than one.
const maxAtOnce = 64

// records is how many different ones the replays and the conflicts meet.
const records = 128

// minSamples is the least of which a 99th percentile says something.
const minSamples = 1000

// An operation's deadline, as of a Lambda invocation; it must lie beyond the
// end of the measurement, which would otherwise let leases end.
const deadline = 6 * time.Hour

type settings struct {
	samples    int
	blocks     int // of the guard alone
	runs       int // of large answers, and of the cache's benchmark
	parts      string
	scenario   string // "": all
	processors int    // to keep to, against the SDK; 0: it shares all of them with the database
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
	// Seeded anew each time: an order that happens to favour a side does so once.
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	var all results
	if s.parts != "guard" {
		server, err := ddblocal.Start(ctx)
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

// measureSDK measures every scenario, one at a time and many at once, and large
// answers.
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

// keepTo keeps the process on so many processors, if it can, until the function that it
// returns is called; 0 is all of them.
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
