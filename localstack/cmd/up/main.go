// Command up leaves the functions running on this machine until Ctrl-C: the
// HTTP API on port 3000 or the one in PORT, with DynamoDB Local behind it. It
// ends with status 0 after Ctrl-C, with 1 if it could not start or stop, and
// with 2 for wrong arguments.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

const usage = `usage: up

Leaves the functions running on this machine until Ctrl-C: the HTTP API on port 3000 or
the one in PORT, with DynamoDB Local behind it. Run it in a checkout of the project.
`

func main() {
	flags := flag.NewFlagSet("up", flag.ExitOnError) // status 0 for -h, 2 for anything unknown
	flags.Usage = func() { _, _ = fmt.Fprint(flags.Output(), usage) }
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "up: it takes no arguments, and got %q\n", flags.Arg(0))
		flags.Usage()
		os.Exit(2)
	}
	// A closed terminal or pipe is a reason to stop in order too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	giveBack := takeTerminal()
	err := run(ctx, os.Stdout)
	giveBack()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

// run leaves everything running until ctx ends.
func run(ctx context.Context, stdout io.Writer) error {
	text := cmp.Or(os.Getenv("PORT"), "3000")
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("PORT is %q: set it to a number from 1 to 65535", text)
	}
	// A signal cuts the start short, but not what runs: Stop lets requests under
	// way finish.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	started := context.AfterFunc(ctx, end)
	s, err := stack.Start(life, stack.Options{Port: port})
	if err != nil {
		return err
	}
	for _, user := range []string{"alice", "bob"} {
		if err := s.OpenAccount(life, user, "EUR", opening); err != nil {
			return errors.Join(err, s.Stop())
		}
	}
	if started() {
		guide(stdout, s)
		<-ctx.Done()
	}
	fmt.Fprintln(os.Stderr, "\nstopping …")
	return s.Stop()
}

// opening is what the accounts of alice and bob have at first, in cents.
const opening = 100_000

// guide says what can be done with a running stack.
func guide(w io.Writer, s *stack.Stack) {
	_, _ = fmt.Fprintf(w, `
The functions answer on %[1]s. Tokens are not verified: keep it to yourself.
DynamoDB Local is at %[2]s, with the tables %[3]s and %[4]s.

  TOKEN=%[5]s

Pay out of the account of alice, which has 1000.00 EUR. Send it twice: the second answer has X-Idempotency-Replayed: true, and there is one payment.

  curl -i %[1]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: order-1' \
    -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'

See it, and refund a part of it (put the id of the answer in place of ID).

  curl -i %[1]s/payments/ID -H "Authorization: Bearer $TOKEN"
  curl -i %[1]s/payments/ID/refunds -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: refund-1' \
    -H 'Content-Type: application/json' -d '{"amount":400}'

Move money to bob's account. The clearing house that is told is a stub; the reference says how it behaves:
delay=5000, fail=2, lose=1, refuse. X-Demo-Crash: cleared kills the first attempt when it was told; repeat the request
until 12 seconds are over.

  curl -i %[1]s/transfers -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: transfer-1' \
    -H 'Content-Type: application/json' -d '{"to":"bob","amount":500,"currency":"EUR","reference":"fail=1"}'

Ask for a slow handler, and repeat the request meanwhile: 409 with Retry-After.

  curl -i %[1]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: order-2' \
    -H 'X-Demo-Delay-Ms: 5000' -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'

Ask for a failure of the first attempt: 500, and the same request again is attempt 2.

  curl -i %[1]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: order-3' \
    -H 'X-Demo-Fail-Attempts: 1' -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'

Look into the tables by the AWS CLI. It wants a Region and credentials; these are made up.

  AWS_DEFAULT_REGION=%[6]s AWS_ACCESS_KEY_ID=%[7]s AWS_SECRET_ACCESS_KEY=%[7]s \
    aws dynamodb scan --endpoint-url %[2]s --table-name %[3]s

Call a function past the API, with an event of your own. Its answer is in out.json.

  echo '{"version":"2.0","rawPath":"/payments/ID","requestContext":{"http":{"method":"GET","path":"/payments/ID"},
    "authorizer":{"jwt":{"claims":{"iss":"%[8]s","sub":"alice"}}}}}' |
    AWS_DEFAULT_REGION=%[6]s AWS_ACCESS_KEY_ID=%[7]s AWS_SECRET_ACCESS_KEY=%[7]s \
    aws lambda invoke --endpoint-url %[1]s --function-name PaymentsFunction --payload fileb:///dev/stdin out.json

Ctrl-C stops everything.
`, s.URL(), s.Database().Endpoint(), s.Table("IdempotencyTable"), s.Table("PaymentsTable"), stack.Token("alice"),
		s.Database().Config().Region, ddblocal.DummyCredential, stack.Issuer)
}
