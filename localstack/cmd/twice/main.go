// Command twice tests a deployment of template.yaml anywhere: on AWS, on LocalStack, or started
// by `make up`. It sends each kind of request of the sample functions twice with one
// Idempotency-Key, compares the answers, and prints a table of the expected and the actual
// answers. It exits with status 0 if all answers are as the contract says, with 1 if not, and
// with 2 for wrong arguments.
//
// The command uses only the API and has no access to the tables, so it can't check that a payment
// was made only once. Its last line has the amount by which the caller's account must have
// decreased, for a script that can read the account.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: TOKEN=... twice -url URL [-transfer-to SUB] [-wait DURATION]

Sends each kind of request twice, with one Idempotency-Key, and compares the answers.
TOKEN is the caller's bearer token, which the API's authorizer takes. The caller has an
account in EUR with 100.00 or more, and none in XTS.

  -url URL            where the API answers: the output ApiUrl of template.yaml.
  -transfer-to SUB    the sub of another caller, who has an account in EUR, where a
                      clearing house is configured. Default: the transfer is one to
                      nobody, which is refused before the clearing house is told.
  -wait DURATION      how long to wait until GET /health answers 200. Default: 2m.

It ends with status 0 if all is as expected, with 1 if not, and with 2 for wrong arguments.
`

// asked has the arguments of the command.
type asked struct {
	base, token, transferTo string
	wait                    time.Duration
}

func main() {
	a := asked{token: os.Getenv("TOKEN")} // not a flag, because other users can see flags with ps
	flags := flag.NewFlagSet("twice", flag.ExitOnError)
	flags.Usage = func() { _, _ = fmt.Fprint(flags.Output(), usage) }
	flags.StringVar(&a.base, "url", "", "")
	flags.StringVar(&a.transferTo, "transfer-to", "", "")
	flags.DurationVar(&a.wait, "wait", 2*time.Minute, "")
	_ = flags.Parse(os.Args[1:])
	if wrong := a.wrong(flags.Args()); wrong != "" {
		fmt.Fprintln(os.Stderr, "twice:", wrong)
		flags.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, a)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "twice:", err)
		os.Exit(1)
	}
}

// wrong returns what is wrong with the arguments, or "". It removes a final slash from the URL.
func (a *asked) wrong(rest []string) string {
	u, err := url.Parse(a.base)
	switch {
	case len(rest) > 0:
		return fmt.Sprintf("it takes no arguments, and got %q", rest[0])
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("-url has to be an http or https URL, and is %q", a.base)
	case a.token == "":
		return "TOKEN has to be the caller's bearer token, and is empty"
	}
	a.base = strings.TrimSuffix(a.base, "/")
	return ""
}

func run(ctx context.Context, a asked) error {
	c := newClient(a.base, a.token)
	if err := c.awaitHealth(ctx, a.wait, time.Second); err != nil {
		return err
	}
	// The keys differ from run to run, so that a run finds no records of an earlier one.
	s := suite{client: c, keys: strings.ToLower(rand.Text()[:10]), transferTo: a.transferTo}
	s.run(ctx)
	return report(os.Stdout, &s)
}
