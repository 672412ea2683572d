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

// mailer is the client of an outside service that sends mails. The service must honor
// Idempotency-Key for at least as long as this function's records live. Package
// localstack/mailer implements such a service for local runs.
type mailer struct {
	base   string
	client *http.Client
}

const (
	// mailerTime is the maximum time for the mailer in one attempt, retries included. It
	// is less than the function's timeout, so that a slow mailer fails one message
	// instead of the complete invocation.
	mailerTime = 5 * time.Second
	// mailerCalls is the maximum number of calls to the mailer in one attempt. A short
	// failure is retried at once. After a longer failure, the queue delivers the message
	// again.
	mailerCalls = 3
)

func newMailer(base string) (mailer, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return mailer{}, fmt.Errorf("the mailer's URL %q is none", base)
	}
	transport := idemclient.New(nil, []string{u.Scheme + "://" + u.Host}, func(o *idemclient.Options) { o.MaxAttempts = mailerCalls })
	client := &http.Client{Transport: transport, Timeout: mailerTime,
		// Don't follow redirects: the response is then an error. At another host, the
		// request would ask for the mail again without the key, and would reveal the
		// payer to a host that nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return mailer{base, client}, nil
}

// mail is the body of a request to the mailer.
type mail struct {
	To        string `json:"to"`
	PaymentID string `json:"payment"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// tell asks the mailer to send a mail. Any 2xx means success (RFC 9110, section 15.3): a
// mailer may answer 201 for a mail that it has created, 202 for one that it will send, and 200
// or 204 for both. After an error, the mail may have been sent. It is safe to call tell again,
// because the key is the same.
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
