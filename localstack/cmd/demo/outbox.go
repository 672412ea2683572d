package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/localstack/mailer"
	"github.com/lambdaidem/toolkit/localstack/queue"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// The second act: what follows from a payment, by way of the payments table's stream
// and a queue. What it is made of is in functions/receipts and functions/notifications.

// outboxTime bounds a payment's way to its mail.
const outboxTime = 90 * time.Second

// hurried shortens the timeouts behind the payments function, and the queue's with
// them, so that what died is tried again soon: as in the template the visibility
// timeout outlasts a lease, which is a timeout and two seconds.
func hurried(t *template.Template) {
	const timeout = 4 * time.Second
	const visibility = timeout + 3*time.Second
	for _, f := range t.Functions {
		if len(f.Sources) > 0 {
			f.Timeout = timeout
		}
	}
	for i := range t.Queues {
		t.Queues[i].Visibility = min(t.Queues[i].Visibility, visibility)
	}
}

// sends counts the messages that the queue accepted about each payment.
type sends struct {
	mu   sync.Mutex
	of   map[string]sent // by payment
	more error           // what no send of this demo may be
}

type sent struct {
	messages, duplicates int
	key                  string
}

func newSends() *sends { return &sends{of: map[string]sent{}} }

// watch is for [stack.Options].Queues.
func (s *sends) watch(o *queue.Options) { o.Accepted = s.accepted }

func (s *sends) accepted(to string, m queue.Outgoing, duplicate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n struct{ Payment string }
	if err := json.Unmarshal([]byte(m.Body), &n); err != nil || n.Payment == "" {
		s.more = fmt.Errorf("the queue %s got %q, which is no notification", to, m.Body)
		return
	}
	now, key := s.of[n.Payment], m.Attributes[lambdaidem.MessageKey].StringValue
	switch {
	case key == "" || key != m.DeduplicationID:
		s.more = fmt.Errorf("a message about payment %s has the key %q, and the deduplication id %q; want the same, and some", n.Payment, key, m.DeduplicationID)
	case now.key != "" && now.key != key:
		s.more = fmt.Errorf("the messages about payment %s have two keys: %q, %q", n.Payment, now.key, key)
	}
	now.key = key
	now.messages++
	if duplicate {
		now.duplicates++
	}
	s.of[n.Payment] = now
}

func (s *sends) about(payment string) sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[payment]
}

func (s *sends) wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}

// outbox is what the second act looks at, and by what it sends.
type outbox struct {
	retrying *http.Client
	sends    *sends
	mailer   *mailer.Service
	queues   []*queue.Queue // all of them: nothing may be left anywhere
	dead     []*queue.Queue
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
	o := outbox{retrying: &http.Client{Transport: retrying}, sends: counted, mailer: s.Mailer()}
	for _, q := range s.Template().Queues {
		own := s.Queue(q.LogicalID)
		o.queues = append(o.queues, own)
		if q.DeadLetter == "" && !isSource(s.Template(), q) {
			o.dead = append(o.dead, own)
		}
	}
	return o
}

// isSource tells whether a function reads the queue.
func isSource(t *template.Template, q template.Queue) bool {
	return slices.ContainsFunc(t.Functions, func(f *template.Function) bool {
		return slices.ContainsFunc(f.Sources, func(s template.Source) bool { return strings.HasSuffix(s.ARN, ":"+q.Name) })
	})
}

// journey is the way that one payment took, in facts.
type journey struct {
	trouble trouble
	request request
	payment string
	posts   []idemclient.Attempt
	answer  answer
}

// pay sends a request by the client that retries, until it has an answer that stands.
func (d *demo) pay(ctx context.Context, t trouble, r request) (journey, error) {
	j := journey{trouble: t, request: r}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, attemptsKey{}, &j.posts), outboxTime)
	defer cancel()
	req, err := d.client.request(ctx, r)
	if err != nil {
		return j, err
	}
	resp, err := d.outbox.retrying.Do(req)
	if err != nil {
		return j, fmt.Errorf("send POST %s again and again, %d times: %w", r.path, len(j.posts), err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	var body bytes.Buffer
	if _, err := io.Copy(&body, resp.Body); err != nil {
		return j, fmt.Errorf("read the answer to POST %s: %w", r.path, err)
	}
	j.answer = answer{resp.StatusCode, resp.Header, body.String()}
	var p struct{ ID string }
	if err := json.Unmarshal(body.Bytes(), &p); err == nil {
		j.payment = p.ID
	}
	return j, nil
}

// arrived waits until the payments have a receipt and a mail each, every queue is
// empty, and no attempt is under way: what could still happen has happened.
func (d *demo) arrived(ctx context.Context, payments ...string) error {
	return d.await(ctx, func(ctx context.Context) (string, error) {
		missing, err := d.missing(ctx, payments)
		if missing == "" && err == nil {
			missing, err = d.underWay(ctx)
		}
		return missing, err
	})
}

// await waits until nothing is missing any more; what is after a while is a wrong
// answer.
func (d *demo) await(ctx context.Context, missing func(context.Context) (string, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(outboxTime)
	defer late.Stop()
	for {
		what, err := missing(ctx)
		if err != nil || what == "" {
			return err
		}
		select {
		case <-tick.C:
		case <-late.C:
			d.out.check(false, "everything has arrived", what)
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting: %s: %w", what, ctx.Err())
		}
	}
}

// missing names a receipt or a mail that the payments do not have yet; empty: they
// have all.
func (d *demo) missing(ctx context.Context, payments []string) (string, error) {
	receipts, err := d.receiptsOf(ctx)
	if err != nil {
		return "", err
	}
	mails := d.mailsOf()
	for _, p := range payments {
		if receipts[p] == 0 {
			return "no receipt of payment " + p, nil
		}
		if len(mails[p]) == 0 {
			return "no mail about payment " + p, nil
		}
	}
	return "", nil
}

// underWay names something that goes on still; empty: nothing does.
func (d *demo) underWay(ctx context.Context) (string, error) {
	for _, q := range d.outbox.queues {
		if depth := q.Depth(); depth != (queue.Depth{}) {
			return fmt.Sprintf("the queue %s is not empty: %+v", q.Name(), depth), nil
		}
	}
	records, err := d.tables.allRecords(ctx)
	for _, r := range records {
		if r.Status == "INPROGRESS" && r.behindQueues() {
			return "an attempt is under way: " + r.Scope, nil
		}
	}
	return "", err
}

// receiptsOf counts the receipts of each payment.
func (d *demo) receiptsOf(ctx context.Context) (map[string]int, error) {
	all, err := d.tables.allReceipts(ctx)
	count := map[string]int{}
	for _, r := range all {
		count[r.PaymentID]++
	}
	return count, err
}

// mailsOf finds the mails about each payment.
func (d *demo) mailsOf() map[string][]mailer.Effect {
	of := map[string][]mailer.Effect{}
	for _, e := range d.outbox.mailer.Effects() {
		of[e.Payment] = append(of[e.Payment], e)
	}
	return of
}

// underFaults is one payment that meets trouble everywhere.
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

// expectJourney checks that a payment had each effect once, and met its trouble, of
// which the mailer must have seen so many calls: else the former would say little.
func (d *demo) expectJourney(ctx context.Context, j journey, mailCalls int) error {
	receipts, err := d.receiptsOf(ctx)
	if err != nil {
		return err
	}
	paid, receipt, made, err := d.papersOf(ctx, j)
	if err != nil {
		return err
	}
	mails := d.mailsOf()[j.payment]
	sent := d.outbox.sends.about(j.payment)
	d.out.check(j.answer.status == 201 && made == 1, "one payment, and the client knows of it", fmt.Sprintf("%d %s, %d in the table", j.answer.status, j.answer.body, made))
	d.out.check(receipts[j.payment] == 1, "one receipt", receipts[j.payment])
	d.out.check(len(mails) == 1 && !mails[0].Refused, "one mail, under one key", fmt.Sprintf("%+v", mails))
	d.out.check(j.isThroughout(paid, receipt, mails), "receipt and mail are over the payment's amount, for who paid it", fmt.Sprintf("%+v, %+v, %+v", paid, receipt, mails))
	d.out.check(sent.messages == sent.duplicates+1 && sent.messages > j.trouble.receiptAttempts(),
		fmt.Sprintf("sent under one key %d times, and one message went on", sent.messages), fmt.Sprintf("%+v", sent))
	calls := 0
	if len(mails) == 1 {
		calls = mails[0].Calls
	}
	d.out.check(len(j.posts) > j.trouble.attempts() && calls >= mailCalls,
		fmt.Sprintf("it met what was to go wrong: %d requests for the payment, %d calls for the mail", len(j.posts), calls),
		fmt.Sprintf("%d requests, %d calls; want more than %d, and %d", len(j.posts), calls, j.trouble.attempts(), mailCalls))
	return nil
}

// papersOf finds a journey's payment and its receipt, and counts the payments of its
// request: an attempt that nobody was told of would be one more.
func (d *demo) papersOf(ctx context.Context, j journey) (paid payment, its receipt, made int, err error) {
	payments, err := d.tables.allPayments(ctx)
	if err != nil {
		return paid, its, 0, err
	}
	for _, p := range payments {
		if p.PaymentID == "" && j.isAbout(p) {
			paid = p
			made++
		}
	}
	receipts, err := d.tables.allReceipts(ctx)
	for _, r := range receipts {
		if r.PaymentID == j.payment {
			its = r
		}
	}
	return paid, its, made, err
}

// isAbout tells whether a payment is what the request asked for: the reference begins
// with the request's key, which no other has.
func (j journey) isAbout(p payment) bool {
	return p.Reference == j.request.key || strings.HasPrefix(p.Reference, j.request.key+" ")
}

// isThroughout tells whether what came of a request is what it asked for.
func (j journey) isThroughout(p payment, r receipt, mails []mailer.Effect) bool {
	var asked struct {
		Amount   int64
		Currency string
	}
	if err := json.Unmarshal([]byte(j.request.body), &asked); err != nil || len(mails) != 1 {
		return false
	}
	owner := stack.Issuer + " " + j.request.user
	return p.Owner == owner && p.Amount == asked.Amount &&
		r == receipt{PaymentID: p.ID, Owner: owner, Amount: asked.Amount, Currency: asked.Currency} &&
		mails[0].To == owner && mails[0].Amount == asked.Amount
}

// pathOf is the way of a payment, from place to place.
func (d *demo) pathOf(j journey) []stop {
	var answers []string
	for _, p := range j.posts {
		switch {
		case p.Err != nil:
			answers = append(answers, "no answer")
		case p.Code != "":
			answers = append(answers, fmt.Sprintf("%d %s", p.Status, strings.TrimPrefix(p.Code, "idempotency_")))
		default:
			answers = append(answers, fmt.Sprint(p.Status))
		}
	}
	sent := d.outbox.sends.about(j.payment)
	calls := 0
	for _, m := range d.mailsOf()[j.payment] {
		calls += m.Calls
	}
	return []stop{
		{"client", fmt.Sprintf("POST /payments × %d, one Idempotency-Key: %s", len(j.posts), inRuns(answers))},
		{"payments", madeToFail(j.trouble.attempts()) + "one transaction: the payment, the debit, the answer"},
		{"stream", "what was committed, and nothing else"},
		{"receipts", madeToFail(j.trouble.receiptAttempts()) + "one transaction: the receipt, its record"},
		{"queue", fmt.Sprintf("%d sent under one key → 1 delivered, %d dropped as duplicates", sent.messages, sent.duplicates)},
		{"notifications", madeToFail(j.trouble.notificationAttempts()) + "its record"},
		{"mailer", fmt.Sprintf("called × %d, one Idempotency-Key → one mail", calls)},
	}
}

// madeToFail begins what happened at a place where so many attempts were lost first.
func madeToFail(attempts int) string {
	switch attempts {
	case 0:
		return ""
	case 1:
		return "1 attempt made to fail → "
	}
	return fmt.Sprintf("%d attempts made to fail → ", attempts)
}

// inRuns writes equal neighbours once, with their number.
func inRuns(texts []string) string {
	var out []string
	for i := 0; i < len(texts); {
		end := i
		for end < len(texts) && texts[end] == texts[i] {
			end++
		}
		text := texts[i]
		if end-i > 1 {
			text = fmt.Sprintf("%s × %d", text, end-i)
		}
		out = append(out, text)
		i = end
	}
	return strings.Join(out, ", ")
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
	for _, q := range d.outbox.dead {
		dead += q.Depth().Visible
	}
	d.out.check(dead == 0 && d.outbox.sends.wrong() == nil && len(d.outbox.mailer.Misuses()) == 0,
		"nothing in the dead-letter queues; no message and no call that a careful client doesn't make",
		fmt.Sprintf("%d dead, %v, %v", dead, d.outbox.sends.wrong(), d.outbox.mailer.Misuses()))
	return nil
}
