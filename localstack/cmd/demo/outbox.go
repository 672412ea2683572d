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

// The second act: what follows from a payment, by way of the payments table's stream
// and a queue. What it is made of is in functions/receipts and functions/notifications.

// outboxTime bounds a payment's way to its mail.
const outboxTime = 90 * time.Second

// hurried shortens the timeouts behind the payments function, and the queue's with
// them, so that what died is tried again soon: as in the template the visibility
// timeout outlasts a lease, which is a timeout and two seconds. So it does the transfers
// function's, whose leases the story waits for.
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

// outbox is what the second act looks at, and by what it sends.
type outbox struct {
	retrying *http.Client
	sends    *sends
	mailer   *mailer.Service
	sqs      *sqs.Client
	queues   []string // names of all of them: nothing may be left anywhere
	dead     []string
}

type attemptsKey struct{}

func newOutbox(s *stack.Stack, counted *sends, base http.RoundTripper) outbox {
	patient := base.(*http.Transport).Clone()
	patient.ResponseHeaderTimeout = time.Second // a client that times out
	retrying := idemclient.New(patient, []string{s.URL()}, func(o *idemclient.Options) {
		o.MaxAttempts = 100 // the context's end is what counts
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

// depth counts the messages of a queue: those that wait, and those in flight or delayed.
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

// isSource tells whether a function reads the queue.
func isSource(t *template.Template, q template.Queue) bool {
	return slices.ContainsFunc(t.Functions, func(f *template.Function) bool {
		return slices.ContainsFunc(f.Sources, func(s template.Source) bool { return strings.HasSuffix(s.ARN, ":"+q.Name) })
	})
}

// underFaults plays one payment that meets trouble everywhere.
func (d *demo) underFaults(ctx context.Context) error {
	// The mailer fails for longer than the three calls of one attempt: the first one
	// calls three times, the second too and dies, the third and the fourth once.
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

// everyOne checks that what the payments led to is there once for each of them, and
// that nothing else is.
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
