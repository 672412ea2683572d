package ddblocal

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// findLauncher returns the first way to start a server that is there.
func findLauncher(ctx context.Context, o Options) (*launcher, error) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		const reason = "there is no POSIX shell (sh) in PATH to watch over it"
		return nil, noneError(o, reason, reason)
	}
	l, javaErr := byJava(ctx, o, sh)
	if javaErr == nil {
		return l, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("ddblocal: %w", javaErr)
	}
	l, dockerErr := byDocker(ctx, o, sh)
	if dockerErr == nil {
		return l, nil
	}
	return nil, noneError(o, javaErr.Error(), dockerErr.Error())
}

// noneError names the three ways and what each one lacks.
func noneError(o Options, java, docker string) error {
	endpoint := "it is not set"
	if o.Own {
		endpoint = "not used, since a server of one's own was asked for"
	}
	return errors.New(strings.Join([]string{
		"ddblocal: DynamoDB Local can't be started. It takes one of these three:",
		"  1. " + EndpointVariable + ", the endpoint of one that runs: " + endpoint,
		"  2. Java 17 or later, and Maven for the first run: " + java,
		"  3. Docker, to run " + image + ": " + docker,
	}, "\n"))
}

// lastLines returns the end of a command's output, indented, for an error message.
func lastLines(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) > 12 {
		lines = lines[len(lines)-12:]
	}
	return "\n       " + strings.Join(lines, "\n       ")
}
