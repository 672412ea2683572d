package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/localstack/mailer"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// This file has the second act: the consequences of a payment, which pass through the stream of
// the payments table and a queue. The functions are functions/receipts and
// functions/notifications.

// outboxTime is the time limit for a payment until its mail is sent.
const outboxTime = 90 * time.Second

// hurried shortens the timeouts of the functions that read the stream and the queue, and the
// visibility timeouts of queues, so that a dead attempt is soon retried. As in the template, the
// visibility timeout is longer than a lease, which is the function's timeout plus two seconds.
// hurried also shortens the timeout of the transfers function, because the story waits for its
// leases.
func hurried(t *template.Template) {
	const timeout = 4 * time.Second
	const visibility = timeout + 3*time.Second
	for _, f := range t.Functions {
		if len(f.Sources) > 0 || f.LogicalID == "TransfersFunction" {
			f.Timeout = timeout
		}
	}
	for i := range t.Queues {
		t.Queues[i].Visibility = min(t.Queues[i].Visibility, visibility)
	}
}

// outbox has the client with which the second act sends requests, and what it observes.
type outbox struct {
	retrying *http.Client
	sends    *sends
	mailer   *mailer.Service
	sqs      *sqs.Client
	queues   []string // names of all queues, which must be empty at the end
	dead     []string
}

type attemptsKey struct{}

func newOutbox(s *stack.Stack, counted *sends, base http.RoundTripper) outbox {
	patient := base.(*http.Transport).Clone()
	patient.ResponseHeaderTimeout = time.Second // the demo's client gives up early, and retries
	retrying := idemclient.New(patient, []string{s.URL()}, func(o *idemclient.Options) {
		o.MaxAttempts = 100 // only the end of the context stops retries
		o.MaxWait = time.Second
		o.Observe = func(ctx context.Context, a idemclient.Attempt) {
			if all, ok := ctx.Value(attemptsKey{}).(*[]idemclient.Attempt); ok {
				*all = append(*all, a)
			}
		}
	})
	o := outbox{retrying: &http.Client{Transport: retrying}, sends: counted, mailer: s.Mailer(), sqs: s.SQS().Client()}
	for _, q := range s.Template().Queues {
		o.queues = append(o.queues, q.Name)
		if q.DeadLetter == "" && !isSource(s.Template(), q) {
			o.dead = append(o.dead, q.Name)
		}
	}
	return o
}

// depth returns the number of messages that a queue can deliver now, and the number of those in
// flight or delayed.
func (o *outbox) depth(ctx context.Context, name string) (waiting, hidden int, err error) {
	found, err := o.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return 0, 0, fmt.Errorf("find the queue %s: %w", name, err)
	}
	out, err := o.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: found.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return 0, 0, fmt.Errorf("count the messages of the queue %s: %w", name, err)
	}
	count := func(attribute types.QueueAttributeName) int {
		n, _ := strconv.Atoi(out.Attributes[string(attribute)])
		return n
	}
	return count(types.QueueAttributeNameApproximateNumberOfMessages),
		count(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible) + count(types.QueueAttributeNameApproximateNumberOfMessagesDelayed), nil
}

// isSource reports whether a function reads the queue.
func isSource(t *template.Template, q template.Queue) bool {
	return slices.ContainsFunc(t.Functions, func(f *template.Function) bool {
		return slices.ContainsFunc(f.Sources, func(s template.Source) bool { return strings.HasSuffix(s.ARN, ":"+q.Name) })
	})
}

// underFaults plays one payment that is hit by faults everywhere.
func (d *demo) underFaults(ctx context.Context) error {
	// The mailer refuses more than the three calls that one attempt makes. The first attempt
	// calls it three times. The second attempt calls it three times and dies. The third and
	// fourth attempts call it once each.
	t := trouble{fails: 1, dies: 2, receiptDies: 1, receiptFails: 2, notificationDies: 2, notificationFails: 3, mailFails: 4, mailLoses: 5}
	const mailCalls = 8
	r := t.order("alice", "order-8", 10)
	d.out.request(r)
	j, err := d.pay(ctx, t, r)
	if err != nil {
		return err
	}
	d.out.answer(j.answer)
	d.owed = append(d.owed, j.payment)
	if err := d.arrived(ctx, j.payment); err != nil {
		return err
	}
	d.out.picture(d.pathOf(j))
	return d.expectJourney(ctx, j, mailCalls)
}

// everyOne checks that each payment has exactly one receipt and one mail, that there are no
// others, that the dead-letter queues are empty, and that no message or call was invalid.
func (d *demo) everyOne(ctx context.Context, payments []string) error {
	if err := d.arrived(ctx, payments...); err != nil {
		return err
	}
	receipts, err := d.receiptsOf(ctx)
	if err != nil {
		return err
	}
	mails := d.mailsOf()
	once := len(receipts) == len(payments) && len(mails) == len(payments)
	for _, p := range payments {
		once = once && receipts[p] == 1 && len(mails[p]) == 1
	}
	d.out.check(once, fmt.Sprintf("%d payments, %[1]d receipts, %[1]d mails: one of each", len(payments)),
		fmt.Sprintf("%d payments; receipts by payment: %v; mails: %v", len(payments), receipts, mails))
	dead := 0
	for _, name := range d.outbox.dead {
		waiting, _, err := d.outbox.depth(ctx, name)
		if err != nil {
			return err
		}
		dead += waiting
	}
	d.out.check(dead == 0 && d.outbox.sends.wrong() == nil && len(d.outbox.mailer.Misuses()) == 0,
		"nothing in the dead-letter queues; no message and no call that a careful client doesn't make",
		fmt.Sprintf("%d dead, %v, %v", dead, d.outbox.sends.wrong(), d.outbox.mailer.Misuses()))
	return nil
}
