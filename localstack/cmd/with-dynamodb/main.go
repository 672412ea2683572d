// Command with-dynamodb runs a command with a DynamoDB Local beside it:
//
//	with-dynamodb [-port N] [-data DIR] -- CMD ARGS…
//
// CMD finds it by AWS_ENDPOINT_URL_DYNAMODB, which the AWS SDKs and the AWS CLI read. If that is set already, CMD gets the
// server named there. AWS_REGION and AWS_DEFAULT_REGION are set where they are absent, to each other or to us-east-1, and
// unless AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are both there, made-up credentials take their place: CMD needs no
// configuration for AWS.
//
// SIGINT, SIGTERM and SIGHUP go on to CMD. (On a terminal, Ctrl-C reaches CMD by itself, so SIGINT isn't sent twice.)
// The server ends after CMD. The exit status is CMD's, 128 plus the signal's number if one killed it, 126 if it can't be
// run, 127 if it isn't there, 125 if there is no server, and 2 for wrong arguments.
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
	// From here on, so that a signal during the start is not lost: it waits for CMD, or ends the start.
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
			// It fails only if CMD has ended, which the other case is about to see.
			_ = cmd.Process.Signal(sig)
		case err := <-ended:
			return exitStatus(cmd.ProcessState, err)
		}
	}
}

// startUnlessSignalled starts the server, and gives up when a signal comes first.
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

// environment adds to env what the AWS SDKs need to find the server.
func environment(lookup func(string) (string, bool), env []string, server *ddblocal.Server) []string {
	env = append(env, ddblocal.EndpointVariable+"="+server.Endpoint())
	// The AWS CLI and the SDK for Python read AWS_DEFAULT_REGION alone, the others AWS_REGION, at least.
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
		// A session token belongs to the credentials that it came with.
		env = append(env, "AWS_ACCESS_KEY_ID="+ddblocal.DummyCredential, "AWS_SECRET_ACCESS_KEY="+ddblocal.DummyCredential, "AWS_SESSION_TOKEN=")
	}
	return env
}

// onTerminal reports whether there is a controlling terminal. It sends Ctrl-C to the whole foreground process group.
func onTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// exitStatus says how a command ended as a shell would. Its own failure is its own to report.
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
