package commands

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestO2_OnlyTheWordIsConsent(t *testing.T) {
	for typed, code := range map[string]int{
		"yes\n": exitDone, "  yes \r\n": exitDone, "yes": exitDone,
		"": exitRefused, "\n": exitRefused, "y\n": exitRefused, "YES\n": exitRefused, "no\nyes\n": exitRefused, "yes yes\n": exitRefused,
	} {
		var out strings.Builder
		err := (&confirmation{}).ask(t.Context(), &app{In: strings.NewReader(typed), Err: printer{&out}, Asks: true}, "yes", "Release %s?", "it\n")
		if got := exitOfOrDone(err); got != code {
			t.Errorf("%q: exit code %d (%v); want %d", typed, got, err, code)
		}
		if want := `Release it\n? Type "yes" to continue: `; out.String() != want {
			t.Errorf("it asks %q; want %q", out.String(), want)
		}
	}
	if err := (&confirmation{yes: true}).ask(t.Context(), &app{}, "yes", "?"); err != nil {
		t.Errorf("with --yes: %v", err)
	}
	if err := (&confirmation{}).ask(t.Context(), &app{In: strings.NewReader("yes\n")}, "yes", "?"); exitOf(err) != exitUsage {
		t.Errorf("without a terminal: %v", err)
	}
}

func exitOfOrDone(err error) int {
	if err == nil {
		return exitDone
	}
	return exitOf(err)
}

// A signal ends a command that waits for confirmation, even if nobody presses Enter.
func TestO2_ASignalEndsAPrompt(t *testing.T) {
	in, person := io.Pipe()
	defer func() { _ = person.Close() }()
	for name, wait := range map[string]func(context.Context, *app) error{
		"a question":     func(ctx context.Context, a *app) error { return (&confirmation{}).ask(ctx, a, "yes", "?") },
		"standard input": func(ctx context.Context, a *app) error { _, err := read(ctx, a, "", "-"); return err },
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		asked := &stopsAt{stop: interrupt}
		if name == "standard input" {
			interrupt()
		}
		err := wait(ctx, &app{In: in, Err: printer{asked}, Asks: true})
		if err == nil || exitOf(err) != exitStopped {
			t.Errorf("%s: %v, exit code %d; want %d", name, err, exitOf(err), exitStopped)
		}
	}
}

// A rate that is out of bounds is rejected before the store is called.
func TestO2_RateIsWithinItsBounds(t *testing.T) {
	d := openDesk(t)
	for _, rate := range []string{"0.0005", "0", "-1", "NaN", "Inf", "1e300"} {
		for _, command := range [][]string{{"leases", "--scan"}, {"leases", "--lease-index", "leases"}, {"watch", "--scan", "--looks", "1"}, {"purge", "--all", "--dry-run"}} {
			d.idem(append(command, "--rate", rate)...).want(t, exitUsage, "--rate is")
		}
	}
	for _, rate := range []string{"0.001", "1", "1e9"} {
		d.idem("leases", "--scan", "--rate", rate).want(t, exitDone)
	}
}
