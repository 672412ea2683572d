package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// mainVariable is the environment variable that makes the test binary run as demo.
const mainVariable = "DEMO_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestDemoStartsNothingWhenItIsAskedForHelpOrMisspelt(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"help":         {[]string{"-h"}, 0, ""},
		"unknown flag": {[]string{"-x"}, 2, "-x"},
		"argument":     {[]string{"fast"}, 2, `takes no arguments, and got "fast"`},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr strings.Builder
			cmd := exec.Command(os.Args[0], test.args...)
			cmd.Dir = t.TempDir() // outside the checkout, where the demo could not start anything
			cmd.Env = append(os.Environ(), mainVariable+"=1")
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != test.status {
				t.Errorf("exit status %d, want %d", got, test.status)
			}
			for _, want := range []string{test.says, "usage: demo [-logs] [-soak N [-seed S]]\n", "status 1"} {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("it said %q; want %q in it", &stderr, want)
				}
			}
		})
	}
}
