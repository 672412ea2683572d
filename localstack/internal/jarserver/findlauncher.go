package jarserver

import (
	"context"
	"errors"
	"os/exec"
	"strings"
)

// findLauncher returns a launcher for Java or, if that is not possible, for Docker. If neither is possible, the error says
// why.
func findLauncher(ctx context.Context, p Program, o Options) (*launcher, error) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		const reason = "there is no POSIX shell (sh) in PATH to watch over it"
		return nil, noneError(p, o, reason, reason)
	}
	l, javaErr := byJava(ctx, p, o, sh)
	if javaErr == nil {
		return l, nil
	}
	if ctx.Err() != nil {
		return nil, javaErr
	}
	l, dockerErr := byDocker(ctx, p, o, sh)
	if dockerErr == nil {
		return l, nil
	}
	return nil, noneError(p, o, javaErr.Error(), dockerErr.Error())
}

// noneError returns an error that names the three ways to get a server, and why each is not available.
func noneError(p Program, o Options, java, docker string) error {
	endpoint := "it is not set"
	if o.Own {
		endpoint = "not used, since a server of one's own was asked for"
	}
	return errors.New(strings.Join([]string{
		p.Name + " can't be started. It takes one of these three:",
		"  1. " + p.Variable + ", the endpoint of one that runs: " + endpoint,
		"  2. Java 17 or later, and Maven for the first run: " + java,
		"  3. Docker, to run " + p.Image + ": " + docker,
	}, "\n"))
}
