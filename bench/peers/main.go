// Command peers plays the same scenarios with this toolkit and with other idempotency
// utilities, over one DynamoDB Local, and prints what each of them did:
//
//	peers [-write] [-peer NAME] [-scenario NAME]
//	peers -time [-write] [-rounds N]
//
// The scenarios are in scenarios.go and the peers in peers.go. Each peer guards one handler in a
// driver, which is a process of its own (see package driver). A proxy stands between the driver and
// the database. In some scenarios the proxy loses replies or refuses requests.
//
// The program prints one line for each result. It fails if all scenarios are played with all peers
// and a result differs from the one in bench/peers/results.json. With -write, it writes the results
// there and into docs/scoreboard.md instead of comparing them. It must run in the project's folder.
//
// With -time, the program plays no scenarios. It measures how long a new request, a replay and a
// conflict take with each peer and with the bare SDK. With -time and -write, it writes the figures
// into bench/peers/timings.json, docs/scoreboard.md and docs/scoreboard.svg.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lambdaidem/toolkit/bench/internal/command"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

type settings struct {
	write, time    bool
	rounds         int
	peer, scenario string // empty: all
}

func main() { os.Exit(command.Main("peers", os.Args[1:], parseFlags, run)) }

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.BoolVar(&s.write, "write", false, "write the results into bench/peers and docs")
	flags.BoolVar(&s.time, "time", false, "measure times instead of playing scenarios")
	flags.IntVar(&s.rounds, "rounds", 1000, "with -time: operations of each kind with each peer, at least 100")
	flags.StringVar(&s.peer, "peer", "", "the one `name` of a peer to run (default all)")
	flags.StringVar(&s.scenario, "scenario", "", "the one `name` of a scenario to play (default all)")
	err := command.Parse(flags, args, func() error {
		switch {
		case s.peer != "" && !slices.ContainsFunc(peers("."), func(p *peer) bool { return p.Name == s.peer }):
			return fmt.Errorf("-peer is %q; there is no such one", s.peer)
		case s.scenario != "" && !slices.ContainsFunc(scenarios, func(sc scenario) bool { return sc.name == s.scenario }):
			return fmt.Errorf("-scenario is %q; there is no such one", s.scenario)
		case s.rounds < 100:
			return fmt.Errorf("-rounds is %d; a 99th percentile wants at least 100", s.rounds)
		case s.time && s.partial():
			return errors.New("-time measures everything: leave out -peer and -scenario")
		case s.write && s.partial():
			return errors.New("-write needs a run of everything: leave out -peer and -scenario")
		}
		return nil
	})
	return s, err
}

func (s settings) partial() bool { return s.peer != "" || s.scenario != "" }

func run(ctx context.Context, s settings) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := install(ctx, root); err != nil {
		return err
	}
	server, err := ddblocal.Start(ctx, func(o *ddblocal.Options) { o.Benchmark = true })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if s.time {
		figures, err := timePeers(ctx, root, server, s.rounds)
		if err != nil {
			return err
		}
		fmt.Print(figures.markdown())
		if s.write {
			return figures.write(root)
		}
		return nil
	}
	fresh, err := playAll(ctx, s, root, server)
	if err != nil || s.partial() {
		return err
	}
	if s.write {
		return fresh.write(root)
	}
	return fresh.compare(root)
}

// playAll plays the scenarios with the peers, and prints the results. Each peer plays one scenario
// at a time. All peers play at the same time, because they mostly wait for leases to end.
func playAll(ctx context.Context, s settings, root string, server *ddblocal.Server) (scoreboard, error) {
	board := newScoreboard(peers(root))
	var (
		mu   sync.Mutex
		all  error
		wait sync.WaitGroup
	)
	for _, p := range peers(root) {
		if s.peer != "" && p.Name != s.peer {
			continue
		}
		wait.Go(func() {
			for _, sc := range scenarios {
				if s.scenario != "" && sc.name != s.scenario {
					continue
				}
				r, err := sc.judge(ctx, p, server)
				mu.Lock()
				if err != nil {
					all = errors.Join(all, err)
				} else {
					board.set(sc.name, p.Name, r)
					fmt.Printf("%-22s %-19s %-4s %s\n", sc.name, p.Name, r.Verdict, strings.ReplaceAll(r.Evidence, "\n", " "))
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return board, all
}
