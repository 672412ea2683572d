package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An outage under policy hold can leave records held although no handler started. The
// functions log these claims, so their log lines tell such records from those whose
// handlers died.

// unstarted has the flags of leases that are about such claims.
type unstarted struct {
	logs    string // a file of log lines; "-": standard input; "": none
	release bool
	signed
	consent
}

func (u *unstarted) flags(f *pflag.FlagSet) {
	f.StringVar(&u.logs, "never-started", "", `a file with log lines of the functions, or "-": list the leases whose handlers never started, by their "never_started" lines`)
	f.BoolVar(&u.release, "release", false, "with --never-started: release these records, so that the next retry runs")
	u.signed.flags(f)
	u.consent.flags(f)
}

// check returns an error for flags that don't fit together.
func (u *unstarted) check() error {
	if u.release && u.logs == "" {
		return errors.New("--release needs --never-started: without the functions' log it is not known which handlers never started")
	}
	return nil
}

// choose reads the log lines. It returns a function that reports whether a record is held by
// one of their claims and has no trace of an attempt that ran: no step, and no attempt that
// died. Without --never-started it returns nil.
func (u *unstarted) choose(ctx context.Context, stdin io.Reader) (func(lambdaidem.Record) bool, error) {
	if u.logs == "" {
		return nil, nil //nolint:nilnil // all leases are listed
	}
	text, err := interruptible(ctx, func() ([]byte, error) {
		if u.logs == "-" {
			return io.ReadAll(stdin)
		}
		return os.ReadFile(u.logs)
	})
	if err != nil {
		return nil, fmt.Errorf("read --never-started: %w", err)
	}
	claims := claimsIn(string(text))
	if len(claims) == 0 {
		return nil, usage(fmt.Errorf(`--never-started %s has no log line in JSON with "outcome":"never_started" and "token_hash"`, u.logs))
	}
	return func(rec lambdaidem.Record) bool {
		return slices.Contains(claims[rec.ID], lambdaidem.TokenHash(rec.Token)) && len(rec.Steps) == 0 && rec.Bound != lambdaidem.BoundByDeadAttempt
	}, nil
}

// claimsIn returns the TokenHash of each claim that the lines of a log are about, by the id
// of the record. It looks at every JSON object of the log, and skips what is before, between
// and after them, such as the name of a function.
func claimsIn(log string) map[string][]string {
	claims := map[string][]string{}
	for {
		at := strings.IndexByte(log, '{')
		if at < 0 {
			return claims
		}
		log = log[at:]
		var line struct {
			Outcome   lambdaidem.Kind `json:"outcome"`
			Record    string          `json:"record"`
			TokenHash string          `json:"token_hash"`
		}
		dec := json.NewDecoder(strings.NewReader(log))
		if dec.Decode(&line) != nil {
			log = log[1:]
			continue
		}
		log = log[dec.InputOffset():]
		if line.Outcome == lambdaidem.EventNeverStarted && line.TokenHash != "" {
			claims[line.Record] = append(claims[line.Record], line.TokenHash)
		}
	}
}

// releaseAll releases the records of the leases, and reports each. A record that has changed
// since it was listed stays as it is.
func (u *unstarted) releaseAll(ctx context.Context, a *app, s *dynamostore.Store, leases []leaseView) error {
	if len(leases) == 0 {
		return nil
	}
	o, err := u.operator(s)
	if err != nil {
		return err
	}
	if err := u.ask(ctx, a, "yes", "Release %s, so that the next retry of each runs?", counted(len(leases), "record", "records")); err != nil {
		return err
	}
	var failures []error
	for _, l := range leases {
		seen, err := s.Inspect(ctx, l.ID)
		switch {
		case err != nil:
		case seen.Record.Token != l.Token:
			err = dynamostore.ErrRecordChanged
		default:
			_, err = o.Release(ctx, seen)
		}
		if err != nil {
			say(a.Err, "%s: %v\n", l.ID, err)
			failures = append(failures, fmt.Errorf("release %s: %w", l.ID, err))
			if ctx.Err() != nil {
				break
			}
		}
	}
	say(a.Err, "%s released.\n", counted(len(leases)-len(failures), "record", "records"))
	return errors.Join(failures...)
}
