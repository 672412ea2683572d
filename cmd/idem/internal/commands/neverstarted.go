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
	"time"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An outage under policy Hold can leave records held although their handlers never started:
// the claim of the lease was applied, but its reply was lost. The functions log each such
// claim as "never_started". This file finds and releases these records by the log lines.
//
// A handler can have run for such a record all the same. A retry ran without a lease
// ("failed_open"), or while the guard was switched off ("switched_off"). Releasing the record
// would let the handler run a second time.

// neverStartedFlags has the flags of leases that concern handlers that never started.
type neverStartedFlags struct {
	logs    string // --never-started: a file with log lines; "-" for standard input; "" if not given
	release bool
	ttl     time.Duration // --ttl: how long the released records last
	leftOut []string      // the ids of the records that choose left out, because a call for them failed open
	operatorFlags
	confirmation
}

func (u *neverStartedFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&u.logs, "never-started", "", `list only the leases whose handlers never started, according to the "never_started" and "failed_open" lines in this file of the functions' log; - is standard input`)
	f.BoolVar(&u.release, "release", false, "with --never-started: release these records, so that the next retry runs")
	ttlFlag(f, &u.ttl)
	u.operatorFlags.flags(f)
	u.confirmation.flags(f)
}

// check returns an error if the flags contradict each other.
func (u *neverStartedFlags) check() error {
	if u.release && u.logs == "" {
		return errors.New("--release needs --never-started: without the functions' log it is not known which handlers never started")
	}
	if u.ttl < lambdaidem.MinTTL {
		return fmt.Errorf("--ttl must be at least %v", lambdaidem.MinTTL)
	}
	return nil
}

// choose reads the log lines and returns a function that selects records. The function
// reports whether a record is held by a claim in the log and shows no sign of a handler
// that ran: it has no step, it was not taken over from an attempt that died, and no call in
// the log ran without its lease. Without --never-started, choose returns nil. It refuses
// --release if calls in the log ran while the guard was switched off, because such a line does
// not name the record.
func (u *neverStartedFlags) choose(ctx context.Context, stdin io.Reader) (func(lambdaidem.Record) bool, error) {
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
	log := readCallLog(string(text))
	if len(log.claims) == 0 {
		return nil, usage(fmt.Errorf(`--never-started %s has no log line in JSON with "outcome":"never_started" and "token_hash"`, u.logs))
	}
	if log.switchedOff > 0 && u.release {
		return nil, refused(`nothing was released: --never-started %s has %s with "outcome":"switched_off". Such a call ran unguarded, perhaps for one of these records, and does not name it. `+
			`Decide each record by itself, or give a log without the lines of functions and times that can't concern these records`, u.logs, counted(log.switchedOff, "line", "lines"))
	}
	return func(rec lambdaidem.Record) bool {
		if len(rec.Steps) > 0 || rec.Bound != "" && rec.Bound != lambdaidem.BoundByDownstreamKey {
			return false // an earlier attempt may have died: BoundByInnerCall hides BoundByDeadAttempt
		}
		if !slices.Contains(log.claims[rec.ID], lambdaidem.TokenHash(rec.Token)) {
			return false
		}
		if log.failedOpen[rec.ID] {
			u.leftOut = append(u.leftOut, rec.ID)
			return false
		}
		return true
	}, nil
}

// printLeftOut prints the records that choose left out because a call for them failed open.
func (u *neverStartedFlags) printLeftOut(to printer) {
	for _, id := range u.leftOut {
		say(to, "%s is left out: a call for it ran without a lease (\"failed_open\"), so its handler may have had its effects. Decide it by itself.\n", id)
	}
}

// callLog has what a log says of calls whose handlers did not start, or ran without a lease.
type callLog struct {
	claims      map[string][]string // the token hashes of the claims whose handlers never started, by the ids of their records
	failedOpen  map[string]bool     // the ids of records for which a call ran without a lease
	switchedOff int                 // calls that ran while the guard was switched off, whose lines name no record
}

// readCallLog reads the JSON objects in a log, and skips all other text, such as the names of
// functions.
func readCallLog(text string) callLog {
	log := callLog{claims: map[string][]string{}, failedOpen: map[string]bool{}}
	for {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return log
		}
		text = text[at:]
		var line struct {
			Outcome   lambdaidem.Kind `json:"outcome"`
			Record    string          `json:"record"`
			TokenHash string          `json:"token_hash"`
		}
		dec := json.NewDecoder(strings.NewReader(text))
		if dec.Decode(&line) != nil {
			text = text[1:]
			continue
		}
		text = text[dec.InputOffset():]
		switch {
		case line.Outcome == lambdaidem.EventNeverStarted && line.TokenHash != "":
			log.claims[line.Record] = append(log.claims[line.Record], line.TokenHash)
		case line.Outcome == lambdaidem.EventFailedOpen:
			log.failedOpen[line.Record] = true
		case line.Outcome == lambdaidem.EventSwitchedOff:
			log.switchedOff++
		}
	}
}

// releaseAll releases the records of the leases after the operator has confirmed. It
// leaves alone a record that has changed since it was listed. It stops if ctx ends. It
// prints each failure and the number of records released, and returns all failures.
func (u *neverStartedFlags) releaseAll(ctx context.Context, a *app, s *dynamostore.Store, leases []leaseView) error {
	if len(leases) == 0 {
		return nil
	}
	o, err := u.operator(s, func(o *dynamostore.OperatorOptions) { o.TTL = u.ttl })
	if err != nil {
		return err
	}
	if err := u.ask(ctx, a, "yes", "Release %s, so that the next retry of each runs?", counted(len(leases), "record", "records")); err != nil {
		return err
	}
	var failures []error
	released := 0
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
			continue
		}
		released++
	}
	say(a.Err, "%s released.\n", counted(released, "record", "records"))
	return codedAsOne(failures, released > 0)
}

// codedAsOne joins the errors of several writes, with one exit code. If it is unknown whether
// one of the writes was applied, the code says so. If others were applied, the code does not
// say that nothing was changed.
func codedAsOne(failures []error, applied bool) error {
	all := errors.Join(failures...)
	unknown := func(err error) bool { return exitOf(err) == exitUnknown }
	switch {
	case slices.ContainsFunc(failures, unknown):
		return codedError{all, exitUnknown}
	case applied && exitOf(all) == exitRefused:
		return codedError{all, exitFailed}
	}
	return all
}
