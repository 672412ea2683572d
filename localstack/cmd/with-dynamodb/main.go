// Command with-dynamodb runs a command with a DynamoDB Local:
//
//	with-dynamodb [-port N] [-data DIR] -- CMD ARGS…
//
// CMD finds the server by the environment variable AWS_ENDPOINT_URL_DYNAMODB, which the AWS SDKs
// and the AWS CLI read. If the variable is already set, no server is started, and CMD uses the
// one that the variable names. CMD needs no other configuration for AWS. If AWS_REGION or
// AWS_DEFAULT_REGION is not set, it gets the value of the other one, or us-east-1. Unless
// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are both set, they get made-up values.
//
// SIGINT, SIGTERM and SIGHUP are forwarded to CMD. (On a terminal, Ctrl-C already sends SIGINT to
// CMD, so it is not forwarded.) The server ends after CMD. The exit status is that of CMD, or 128
// plus the number of the signal that killed CMD. It is 126 if CMD can't be run, 127 if CMD is not
// found, 125 if there is no server, and 2 for wrong arguments.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

const (
	exitUsage     = 2
	exitNoServer  = 125
	exitCantRun   = 126
	exitNotFound  = 127
	exitSignalled = 128
)

func main() {
	flags := flag.NewFlagSet("with-dynamodb", flag.ExitOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: with-dynamodb [-port N] [-data DIR] -- CMD ARGS…")
		flags.PrintDefaults()
	}
	port := flags.Int("port", 0, "the `port` to listen on; 0: a free one")
	data := flags.String("data", "", "a `folder` to keep the tables in; none: in memory")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: it doesn't return one
	if flags.NArg() == 0 {
		_, _ = fmt.Fprintln(os.Stderr, "with-dynamodb: there is no command to run")
		flags.Usage()
		os.Exit(exitUsage)
	}
	status, err := run(flags.Args(), func(o *ddblocal.Options) { o.Port, o.DataDir = *port, *data })
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "with-dynamodb:", err)
	}
	os.Exit(status)
}

func run(command []string, options func(*ddblocal.Options)) (status int, err error) {
	// Receive signals from here on, so that a signal during the start is not lost. It ends the
	// start, or is forwarded to CMD.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	server, status, err := startUnlessSignalled(signals, options)
	if err != nil {
		return status, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment(os.LookupEnv, os.Environ(), server)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return exitNotFound, err
		}
		return exitCantRun, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if sig == os.Interrupt && onTerminal() {
				continue
			}
			// Signal fails only if CMD has ended, which the other case will notice.
			_ = cmd.Process.Signal(sig)
		case err := <-ended:
			return exitStatus(cmd.ProcessState, err)
		}
	}
}

// startUnlessSignalled starts the server. If a signal arrives first, it stops the start and
// returns an error and the exit status for the signal.
func startUnlessSignalled(signals <-chan os.Signal, options func(*ddblocal.Options)) (*ddblocal.Server, int, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	type result struct {
		server *ddblocal.Server
		err    error
	}
	started := make(chan result, 1)
	go func() {
		server, err := ddblocal.Start(ctx, options)
		started <- result{server, err}
	}()
	status := exitNoServer
	for {
		select {
		case sig := <-signals:
			cancel(fmt.Errorf("stopped by a signal: %s", sig))
			if number, ok := sig.(syscall.Signal); ok {
				status = exitSignalled + int(number)
			}
		case r := <-started:
			if r.err == nil && ctx.Err() != nil {
				return nil, status, errors.Join(context.Cause(ctx), r.server.Stop())
			}
			return r.server, status, r.err
		}
	}
}

// environment adds to env the variables that the AWS SDKs need to use the server.
func environment(lookup func(string) (string, bool), env []string, server *ddblocal.Server) []string {
	env = append(env, ddblocal.EndpointVariable+"="+server.Endpoint())
	// The AWS CLI and the SDK for Python read only AWS_DEFAULT_REGION. The other SDKs read
	// AWS_REGION.
	region, _ := lookup("AWS_REGION")
	other, _ := lookup("AWS_DEFAULT_REGION")
	if region == "" {
		env = append(env, "AWS_REGION="+cmp.Or(other, server.Config().Region))
	}
	if other == "" {
		env = append(env, "AWS_DEFAULT_REGION="+cmp.Or(region, server.Config().Region))
	}
	id, _ := lookup("AWS_ACCESS_KEY_ID")
	secret, _ := lookup("AWS_SECRET_ACCESS_KEY")
	if id == "" || secret == "" {
		// Remove a session token too, because it belongs to the credentials that are replaced.
		env = append(env, "AWS_ACCESS_KEY_ID="+ddblocal.DummyCredential, "AWS_SECRET_ACCESS_KEY="+ddblocal.DummyCredential, "AWS_SESSION_TOKEN=")
	}
	return env
}

// onTerminal reports whether there is a controlling terminal. The terminal sends SIGINT for
// Ctrl-C to the whole foreground process group.
func onTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// exitStatus returns the exit status of a command as a shell would. A status other than 0 is not
// an error, because the command itself reports what failed. It returns an error only if the
// command could not be waited for.
func exitStatus(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return exitCantRun, err
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return exitSignalled + int(ws.Signal()), nil
	}
	return state.ExitCode(), nil
}
