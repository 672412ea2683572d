package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/propagate/httpkey"
)

// mailer sends mails through the service at this base URL.
type mailer struct{ url string }

// confirm has a mail sent for a new order. It does nothing for other changes of the table.
func (m mailer) confirm(ctx context.Context, change events.DynamoDBEventRecord) error {
	if change.EventName != "INSERT" {
		return nil
	}
	mail := "Thank you for your order " + change.Change.NewImage["id"].String()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/mails", strings.NewReader(mail))
	if err != nil {
		return err
	}
	if err := httpkey.Request(ctx, "mail", r); err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("the mailer replied %s", reply.Status)
	}
	return nil
}
