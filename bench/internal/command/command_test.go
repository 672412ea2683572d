package command_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/bench/internal/command"
)

var errTooFew = errors.New("-times is too small; want at least 1")

// program returns the parse function of a program with one flag, and the text that the function
// prints.
func program() (parse func(args []string) (int, error), printed *strings.Builder) {
	printed = &strings.Builder{}
	return func(args []string) (times int, err error) {
		flags := flag.NewFlagSet("bench", flag.ContinueOnError)
		flags.SetOutput(printed)
		flags.IntVar(&times, "times", 3, "how often")
		err = command.Parse(flags, args, func() error {
			if times < 1 {
				return errTooFew
			}
			return nil
		})
		return times, err
	}, printed
}

func TestMain_ExitsWithTheStatusOfWhatFailed(t *testing.T) {
	const usage = "Usage of bench:\n"
	for arguments, want := range map[string]struct {
		status, times int // times is 0 if run must not be called
		printed       string
	}{
		"":                {0, 3, ""},
		"-times 5":        {0, 5, ""},
		"-times 13":       {1, 13, ""},
		"-h":              {0, 0, usage},
		"-unknown":        {2, 0, "flag provided but not defined: -unknown\n" + usage},
		"-times 0":        {2, 0, "bench: -times is too small; want at least 1\n" + usage},
		"-times 5 more":   {2, 0, "bench: unexpected argument \"more\"\n" + usage},
		"-times 0 more -": {2, 0, "bench: unexpected argument \"more\"\n" + usage},
	} {
		parse, printed := program()
		ran := 0
		status := command.Main("bench", strings.Fields(arguments), parse, func(_ context.Context, times int) error {
			if ran = times; times == 13 {
				return errors.New("an unlucky number")
			}
			return nil
		})
		if status != want.status || ran != want.times || !strings.HasPrefix(printed.String(), want.printed) || want.printed == "" && printed.Len() > 0 {
			t.Errorf("with %q, the status is %d, run got %d, and this is printed: %q; want %+v", arguments, status, ran, printed, want)
		}
	}
}

func TestRun_PrintsTheError(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	own := os.Stderr
	os.Stderr = file
	status := command.Run("bench", func(context.Context) error { return errTooFew })
	os.Stderr = own
	printed, err := os.ReadFile(file.Name())
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if want := "bench: " + errTooFew.Error() + "\n"; status != 1 || string(printed) != want {
		t.Errorf("the status is %d, and %q is printed; want 1 and %q", status, printed, want)
	}
}

func TestRun_InterruptCancelsTheContext(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	status := command.Run("bench", func(ctx context.Context) error {
		if err := self.Signal(os.Interrupt); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if status != 0 {
		t.Errorf("the status is %d", status)
	}
}
