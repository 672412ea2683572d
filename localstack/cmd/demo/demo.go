package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// demo plays the steps of the story in order.
type demo struct {
	client   *client
	tables   tables
	clearing *clearing.Service
	outbox   outbox
	watch    watch
	iam      *iam.Checker
	operator operator // not set in a soak
	out      *printer

	records map[string]bool // IDs of the records seen so far

	// The results of the first request, which later steps repeat.
	first       answer
	firstID     string // ID of its payment
	firstRecord record

	night night // state of the third act

	opened int64 // sum of all accounts at the beginning

	owed []string // IDs of the payments that clients were told of; the table must contain exactly these
}

func newDemo(s *stack.Stack, counted *sends, out io.Writer) *demo {
	client := newClient(s.URL())
	return &demo{
		client:   client,
		outbox:   newOutbox(s, counted, client.http.Transport),
		clearing: s.Clearing(),
		watch:    watch{s.Emulator().Invoke},
		iam:      s.IAM(),
		tables:   tables{s.Database().Client(), s.Table("IdempotencyTable"), s.Table("PaymentsTable"), s.Table("AccountsTable"), s.Table("TransfersTable"), s.Table("ReceiptsTable")},
		out:      newPrinter(out, wantsColour(os.Stdout)),
		records:  map[string]bool{},
	}
}

// play plays every step. It returns an error if a step could not be played. A wrong answer is not
// an error; the printer counts it.
func (d *demo) play(ctx context.Context) error {
	for _, s := range story {
		d.out.begin(s.title)
		if err := s.play(d, ctx); err != nil {
			return fmt.Errorf("step %s: %w", d.out.step, err)
		}
	}
	return nil
}

// send sends a request. It prints the request and the answer.
func (d *demo) send(ctx context.Context, r request) (answer, error) {
	d.out.request(r)
	a, err := d.client.send(ctx, r)
	if err == nil {
		d.out.answer(a)
	}
	return a, err
}

// expectStatus checks the status of an answer.
func (d *demo) expectStatus(a answer, status int) {
	d.out.check(a.status == status, fmt.Sprint(status), a.status)
}

// expectRefusal checks the status and the code of an answer with which the guard or a function
// refuses a request.
func (d *demo) expectRefusal(a answer, status int, code string) {
	d.out.check(a.status == status && a.code() == code, fmt.Sprintf("%d %s", status, code), fmt.Sprintf("%d %s", a.status, a.body))
}

// expectReplay checks that an answer is a replay of the first one.
func (d *demo) expectReplay(first, again answer) {
	d.out.check(again.status == first.status && again.body == first.body && again.replayed() && !first.replayed(),
		fmt.Sprintf("%d again, the same bytes, marked by %s: true", first.status, replayMark),
		fmt.Sprintf("%d %s: %q %s", again.status, replayMark, again.header.Get(replayMark), again.body))
}

// expectPayment checks that the answer is a 201 with a new payment, records the payment in
// d.owed, and returns its ID.
func (d *demo) expectPayment(a answer) string {
	var p struct{ ID string }
	err := json.Unmarshal([]byte(a.body), &p)
	d.out.check(err == nil && a.status == 201 && p.ID != "" && !a.replayed() && a.header.Get("Location") == "/payments/"+p.ID,
		"201 with a new payment and its Location", fmt.Sprintf("%d Location: %q %s", a.status, a.header.Get("Location"), a.body))
	d.owed = append(d.owed, p.ID)
	return p.ID
}
