//go:build unix

package main

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// mainVariable is the environment variable that makes the test binary run as with-dynamodb.
const mainVariable = "WITH_DYNAMODB_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// withDynamoDB returns the command, with no AWS variables in its environment except those in
// extra.
func withDynamoDB(extra []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") })
	cmd.Env = append(append(cmd.Env, mainVariable+"=1"), extra...)
	cmd.Stderr = os.Stderr
	// Start a new session without a controlling terminal, so that SIGINT is forwarded even if the
	// tests run on a terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func status(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

const show = `echo "$AWS_ENDPOINT_URL_DYNAMODB|$AWS_REGION|$AWS_DEFAULT_REGION|$AWS_ACCESS_KEY_ID|$AWS_SECRET_ACCESS_KEY|$AWS_SESSION_TOKEN"`

func TestRun_StartsAServerAndReturnsTheExitStatus(t *testing.T) {
	out, err := withDynamoDB([]string{"AWS_ACCESS_KEY_ID=real", "AWS_SESSION_TOKEN=real"}, "--", "sh", "-c", show+"; exit 7").Output()
	if got := status(t, err); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
	endpoint, rest, _ := strings.Cut(strings.TrimSpace(string(out)), "|")
	if rest != "us-east-1|us-east-1|local|local|" {
		t.Errorf("environment %q", rest)
	}
	address, found := strings.CutPrefix(endpoint, "http://")
	if !found {
		t.Fatalf("endpoint %q", endpoint)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Errorf("%s still answers", endpoint)
	}
}

func TestRun_KeepsWhatIsSet(t *testing.T) {
	endpoint := ddblocal.ForTest(t).Endpoint()
	with := []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + endpoint, "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-2",
		"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=token",
	}
	out, err := withDynamoDB(with, "--", "sh", "-c", show).Output()
	if want := endpoint + "|eu-west-1|eu-west-2|id|secret|token\n"; err != nil || string(out) != want {
		t.Errorf("got %q, error %v, want %q", out, err, want)
	}
}

// The AWS CLI and the SDK for Python read only AWS_DEFAULT_REGION, and the other SDKs AWS_REGION.
func TestRun_OneRegionIsEnough(t *testing.T) {
	endpoint := "AWS_ENDPOINT_URL_DYNAMODB=" + ddblocal.ForTest(t).Endpoint()
	for _, variable := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		out, err := withDynamoDB([]string{endpoint, variable + "=eu-west-1"}, "--", "sh", "-c", `echo "$AWS_REGION|$AWS_DEFAULT_REGION"`).Output()
		if err != nil || string(out) != "eu-west-1|eu-west-1\n" {
			t.Errorf("with %s alone: got %q, error %v; want it in both variables", variable, out, err)
		}
	}
}

func TestRun_ForwardsSignals(t *testing.T) {
	env := []string{"AWS_ENDPOINT_URL_DYNAMODB=" + ddblocal.ForTest(t).Endpoint()}
	for name, test := range map[string]struct {
		signal syscall.Signal
		script string
		want   int
	}{
		"SIGINT, caught":  {syscall.SIGINT, `trap 'kill $!; exit 3' INT; sleep 60 & echo ready; wait`, 3},
		"SIGTERM, caught": {syscall.SIGTERM, `trap 'kill $!; exit 4' TERM; sleep 60 & echo ready; wait`, 4},
		"SIGTERM, deadly": {syscall.SIGTERM, `echo ready; exec sleep 60`, 128 + int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := withDynamoDB(env, "--", "sh", "-c", test.script)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
				t.Errorf("the command said %q, error %v", line, err)
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Error(err)
			}
			if got := status(t, cmd.Wait()); got != test.want {
				t.Errorf("exit status %d, want %d", got, test.want)
			}
		})
	}
}

func TestRun_WhatCantBeRunHasAStatusOfItsOwn(t *testing.T) {
	env := []string{"AWS_ENDPOINT_URL_DYNAMODB=" + ddblocal.ForTest(t).Endpoint()}
	for name, test := range map[string]struct {
		env  []string
		args []string
		want int
	}{
		"help":            {env, []string{"-h"}, 0},
		"no command":      {env, nil, exitUsage},
		"unknown flag":    {env, []string{"-x"}, exitUsage},
		"not there":       {env, []string{"--", "no-such-command"}, exitNotFound},
		"a folder":        {env, []string{"--", "/"}, exitCantRun},
		"no server there": {[]string{"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"}, []string{"--", "true"}, exitNoServer},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr strings.Builder
			cmd := withDynamoDB(test.env, test.args...)
			cmd.Stderr = &stderr
			if got := status(t, cmd.Run()); got != test.want {
				t.Errorf("exit status %d, want %d; it said: %s", got, test.want, &stderr)
			}
			if !strings.Contains(stderr.String(), "with-dynamodb") {
				t.Errorf("it said %q", &stderr)
			}
			if usage := strings.Contains(stderr.String(), "usage: with-dynamodb "); usage != (test.want == exitUsage || test.want == 0) {
				t.Errorf("the usage was printed: %t; it said %q", usage, &stderr)
			}
			if name == "no command" && !strings.Contains(stderr.String(), "no command to run") {
				t.Errorf("it said %q; want that there is no command", &stderr)
			}
		})
	}
}
