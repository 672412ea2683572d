package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/propagate/httpkey"
)

// mailer is a service outside that sends mails. It honours Idempotency-Key for at
// least as long as our own records live. Package localstack/mailer has one to try.
type mailer struct {
	base   string
	client *http.Client
}

const (
	// mailerTime is what a mailer gets in one attempt, retries included. It is less
	// than the function's timeout, so that a slow mailer is a failure of one message,
	// and not the end of the invocation.
	mailerTime = 5 * time.Second
	// mailerCalls is how often it is called in one attempt, at most: a hiccup need not
	// cost a visibility timeout. What takes longer to pass is the queue's business.
	mailerCalls = 3
)

func newMailer(base string) (mailer, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return mailer{}, fmt.Errorf("the mailer's URL %q is none", base)
	}
	transport := idemclient.New(nil, []string{u.Scheme + "://" + u.Host}, func(o *idemclient.Options) { o.MaxAttempts = mailerCalls })
	client := &http.Client{Transport: transport, Timeout: mailerTime,
		// A redirect is a failure that somebody sees. Followed to another host, it would
		// ask there for the mail again, without the key, and tell of payers to whom
		// nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return mailer{base, client}, nil
}

// mail is what the mailer is asked for.
type mail struct {
	To        string `json:"to"`
	PaymentID string `json:"payment"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// tell has a mail sent. Any 2xx is an answer of success (RFC 9110, 15.3): a mailer may
// say 201 of a mail that it made, 202 of one that it is to send, 200 or 204 of either.
// After an error it is not known whether it was sent; the same key finds out.
func (m mailer) tell(ctx context.Context, n notification.Notification) error {
	failed := func(err error) error { return fmt.Errorf("mail about payment %s: %w", n.PaymentID, err) }
	body, err := json.Marshal(mail{n.To, n.PaymentID, n.Amount, n.Currency, n.Reference})
	if err != nil {
		return failed(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+"/mails", bytes.NewReader(body))
	if err != nil {
		return failed(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := httpkey.Request(ctx, "mail", r); err != nil {
		return failed(err)
	}
	resp, err := m.client.Do(r)
	if err != nil {
		return failed(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	if resp.StatusCode/100 != 2 {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // for the log
		return failed(fmt.Errorf("the mailer says %s: %q", resp.Status, why))
	}
	return nil
}
