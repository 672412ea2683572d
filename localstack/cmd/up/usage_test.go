package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/internal/browsertest"
)

// mainVariable makes the test binary play up.
const mainVariable = "UP_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(browsertest.Closing(m).Run())
}

func TestUpStartsNothingWhenItIsAskedForHelpOrMisspelt(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"help":                      {[]string{"-h"}, 0, ""},
		"unknown flag":              {[]string{"-x"}, 2, "-x"},
		"argument":                  {[]string{"3000"}, 2, `takes no arguments, and got "3000"`},
		"a path without its flag":   {[]string{"template.yaml"}, 2, `takes no arguments, and got "template.yaml"`},
		"a template without a path": {[]string{"-template"}, 2, "needs an argument"},
		"a parameter without value": {[]string{"-parameter", "Stage"}, 2, "it has to be NAME=VALUE"},
		"a value without parameter": {[]string{"-parameter", "=dev"}, 2, "it has to be NAME=VALUE"},
		"a parameter given twice":   {[]string{"-parameter", "Stage=dev", "-parameter", "Stage=prod"}, 2, "Stage has a value already"},
		"a reference without value": {[]string{"-reference", "ssm:/shop/a"}, 2, "it has to be NAME=VALUE"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr strings.Builder
			cmd := exec.Command(os.Args[0], test.args...)
			cmd.Dir = t.TempDir() // where it could not start anything
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
			for _, want := range []string{test.says, "usage: up [-template FILE]", "PORT"} {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("it said %q; want %q in it", &stderr, want)
				}
			}
		})
	}
}
