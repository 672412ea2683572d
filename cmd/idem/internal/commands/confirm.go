package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// confirmation gets the operator's confirmation for a destructive command.
type confirmation struct {
	yes bool // --yes: the operator has confirmed the command already
}

func (c *confirmation) flags(f *pflag.FlagSet) {
	f.BoolVar(&c.yes, "yes", false, "don't ask for confirmation; required if there is no terminal")
}

// ask prints the formatted question and asks the operator to type word, unless --yes was
// given. It returns nil if the operator typed word. It returns a usage error if there is no
// terminal. If ctx ends, ask returns an error with the cause without waiting any longer.
func (c *confirmation) ask(ctx context.Context, a *app, word, format string, args ...any) error {
	if c.yes {
		return nil
	}
	if !a.Asks {
		return usage(errors.New("there is no terminal to ask on; use --yes if you mean it"))
	}
	say(a.Err, "%s Type %q to continue: ", fmt.Sprintf(format, args...), word)
	line, err := interruptible(ctx, func() (string, error) { return bufio.NewReader(a.In).ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		say(a.Err, "\n")
		return fmt.Errorf("no answer; nothing was changed: %w", err)
	case strings.TrimSpace(line) == word:
		return nil
	case errors.Is(err, io.EOF) && line == "":
		return refused("no answer; nothing was changed")
	default:
		return refused("not confirmed; nothing was changed")
	}
}

// interruptible calls read and returns its results. If ctx ends first, it returns the cause
// at once. A read from a terminal can't be cancelled, so the goroutine that calls read may
// then outlive interruptible. That does no harm, because the process is about to exit.
func interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
