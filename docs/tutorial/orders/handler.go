package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// shop has what the handler needs besides the request.
type shop struct {
	orders string // the name of the table of orders
	bank   string // the base URL of the bank
}

type order struct {
	ID     string `json:"id"     dynamodbav:"id"`
	Item   string `json:"item"   dynamodbav:"item"`
	Amount int    `json:"amount" dynamodbav:"amount"` // in cents
	Charge string `json:"charge" dynamodbav:"charge"` // the bank's number of the charge
}

// create charges the card, and enlists the order to be stored with the response.
func (s shop) create(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	var in struct {
		Item   string `json:"item"`
		Amount int    `json:"amount"`
	}
	if err := json.Unmarshal([]byte(e.Body), &in); err != nil || in.Amount <= 0 {
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Reject(400, "order_invalid", "The body must be JSON with an item and an amount.")
	}
	o := order{ID: lambdaidem.RecordID(ctx), Item: in.Item, Amount: in.Amount}

	var err error
	o.Charge, err = lambdaidem.Step(ctx, "charge", func(ctx context.Context) (string, error) { return s.charge(ctx, o) })
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}

	dynamostore.Enlist(ctx).PutValue("order", s.orders, o)

	body, err := json.Marshal(o)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusCreated,
		Headers:    map[string]string{"Content-Type": "application/json"},
		Body:       string(body),
	}, nil
}

// charge asks the bank to charge the card, and returns the number of the charge.
func (s shop) charge(ctx context.Context, o order) (string, error) {
	body, err := json.Marshal(map[string]int{"amount": o.Amount})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.bank+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", lambdaidem.Retryable(err) // the bank was not asked
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err // the bank may have charged the card
	}
	defer func() { _ = reply.Body.Close() }()
	switch reply.StatusCode {
	case http.StatusCreated:
		var charged struct{ Number string }
		err := json.NewDecoder(reply.Body).Decode(&charged)
		return charged.Number, err
	case http.StatusPaymentRequired:
		return "", lambdaidem.Reject(402, "card_declined", "The bank declined the card.")
	default:
		return "", fmt.Errorf("the bank replied %s", reply.Status)
	}
}
