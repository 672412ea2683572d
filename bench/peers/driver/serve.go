package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Settings has the settings that the scoreboard passes to a driver in environment variables.
type Settings struct {
	Table      string        // PEER_TABLE: the table of the records
	Accounts   string        // PEER_ACCOUNTS: the table with the balances
	Timeout    time.Duration // PEER_TIMEOUT_MS: the function's timeout
	ClockAhead time.Duration // PEER_CLOCK_AHEAD_MS: how far the driver's clock is ahead of the scoreboard's
	Wait       bool          // PEER_WAIT=1: a duplicate waits for the first attempt
	Secrets    []string      // PEER_SECRETS: secrets that sign fingerprints, separated by commas
}

// ReadSettings reads the settings from the environment.
func ReadSettings() Settings {
	s := Settings{
		Table:      os.Getenv("PEER_TABLE"),
		Accounts:   os.Getenv("PEER_ACCOUNTS"),
		Timeout:    milliseconds("PEER_TIMEOUT_MS"),
		ClockAhead: milliseconds("PEER_CLOCK_AHEAD_MS"),
		Wait:       os.Getenv("PEER_WAIT") == "1",
	}
	if list := os.Getenv("PEER_SECRETS"); list != "" {
		s.Secrets = strings.Split(list, ",")
	}
	return s
}

func milliseconds(variable string) time.Duration {
	n, _ := strconv.Atoi(os.Getenv(variable)) // unset: 0
	return time.Duration(n) * time.Millisecond
}

// Call is one call of the guarded function.
type Call struct {
	ID      int
	Request Request
	Left    time.Duration // the time until the invocation's deadline
	Script  Script

	lines  *lines
	resume chan struct{}
}

// ErrScripted is the error of a handler whose script says Fail.
var ErrScripted = errors.New("the payment service is down")

// Run follows the parts of the script that are the same with every peer. It calls add if the script
// has an account, reports that the handler runs, waits if the script says Hold, and returns
// ErrScripted if the script says Fail. add adds 1 to the balance of an account.
func (c *Call) Run(add func(account string) error) error {
	if c.Script.Add != "" {
		if err := add(c.Script.Add); err != nil {
			return err
		}
	}
	c.lines.write(Message{ID: c.ID, Ran: true})
	if c.Script.Hold {
		<-c.resume
	}
	if c.Script.Fail {
		return ErrScripted
	}
	return nil
}

// Serve reads calls from standard input until it ends. It calls handle for each call in a goroutine of
// its own, and writes the answer to standard output. now is the clock by which the peer decides
// whether a lease has ended.
func Serve(now func() time.Time, handle func(context.Context, *Call) Answer) error {
	out := &lines{encoder: json.NewEncoder(os.Stdout)}
	waiting := map[int]chan struct{}{}
	in := bufio.NewReader(os.Stdin)
	out.write(Message{Ready: true, ClockMS: now().UnixMilli()})
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if m.Resume {
			close(waiting[m.ID])
			continue
		}
		c := &Call{ID: m.ID, Request: *m.Request, Left: time.Duration(m.LeftMS) * time.Millisecond, Script: m.Script,
			lines: out, resume: make(chan struct{})}
		waiting[m.ID] = c.resume
		go func() {
			began := time.Now()
			answer := handle(context.Background(), c)
			out.write(Message{ID: c.ID, Answer: &answer, TookUS: time.Since(began).Microseconds()})
		}()
	}
}

// lines writes one message per line. It is safe for concurrent use.
type lines struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (l *lines) write(m Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.encoder.Encode(m) //nolint:errchkjson // a write fails only if the scoreboard has ended
}
