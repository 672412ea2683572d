package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// operatorCommand is the command that an operator uses.
const operatorCommand = "github.com/lambdaidem/toolkit/cmd/idem"

// operator is the person who is called at night. The operator has cmd/idem as a binary, and an
// environment that points it to the stack's table.
type operator struct {
	binary string
	env    []string
}

// said is the output and exit code of a command.
type said struct {
	out, errs string
	code      int
}

// buildOperator builds operatorCommand into a folder.
func buildOperator(ctx context.Context, s *stack.Stack, folder string) (operator, error) {
	o := operator{binary: filepath.Join(folder, "idem"), env: os.Environ()}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.binary, operatorCommand).CombinedOutput(); err != nil {
		return o, fmt.Errorf("build %s: %w\n%s", operatorCommand, err, out)
	}
	database := s.Database().Config()
	keys, err := database.Credentials.Retrieve(ctx)
	if err != nil {
		return o, fmt.Errorf("credentials for %s: %w", operatorCommand, err)
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.Database().Endpoint(), "AWS_REGION": database.Region,
		"AWS_ACCESS_KEY_ID": keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY": keys.SecretAccessKey, "AWS_SESSION_TOKEN": "",
		// Ignore the user's AWS profile, so that no command can reach a real account.
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"IDEM_TABLE": s.Table("IdempotencyTable"), "IDEM_LEASE_INDEX": s.Template().Function(watchFunction).Environment["IDEMPOTENCY_LEASE_INDEX"],
	} {
		o.env = append(o.env, name+"="+value)
	}
	return o, nil
}

// run runs the command until it ends. It returns an error if the command could not be run or ctx
// has ended. An exit code other than 0 is not an error.
func (o operator) run(ctx context.Context, args ...string) (said, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, o.binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = o.env, &out, &errs, time.Second
	err := cmd.Run()
	ended := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
		return said{}, fmt.Errorf("run idem %s: %w", strings.Join(args, " "), errors.Join(err, ctx.Err()))
	}
	return said{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, nil
}

// quoted returns a command line as a user would type it in a shell.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$`&|;<>()*?[]{}~!") {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
