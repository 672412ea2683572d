package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/localstack/mailer"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// journey records what happened to one payment.
type journey struct {
	trouble trouble
	request request
	payment string
	posts   []idemclient.Attempt
	answer  answer
}

// pay sends a request with the client that retries, until the answer is final.
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

// expectJourney checks that a payment had each effect exactly once, and that its trouble really
// happened, because otherwise the first check would prove little. mailCalls is the minimum number
// of calls that the mailer must have received.
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

// papersOf returns a journey's payment and receipt, and the number of payments for its request. A
// payment by an attempt whose answer was lost would count too.
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

// isAbout reports whether a payment was made for the journey's request. The reference begins with
// the key of the request, which no other request has.
func (j journey) isAbout(p payment) bool {
	return p.Reference == j.request.key || strings.HasPrefix(p.Reference, j.request.key+" ")
}

// isThroughout reports whether the payment, the receipt and the mail agree with the request: all
// have its owner and amount, and the receipt has its currency.
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

// pathOf returns what happened to a payment at each place on its way.
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

// madeToFail returns the beginning of the text for a place where this number of attempts was made
// to fail.
func madeToFail(attempts int) string {
	switch attempts {
	case 0:
		return ""
	case 1:
		return "1 attempt made to fail → "
	}
	return fmt.Sprintf("%d attempts made to fail → ", attempts)
}

// inRuns joins the texts with commas. It writes equal neighbors once, with their number.
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
