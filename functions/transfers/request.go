package main

import (
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/order"
)

type request struct {
	order.Order

	To string `json:"to"` // the recipient: the claim sub of the recipient's token
}

// parse decodes and checks the body. The text of an error begins with the field's name and is
// sent to the client.
func parse(e events.APIGatewayV2HTTPRequest, owner string) (request, error) {
	var in struct {
		order.Fields

		To *string `json:"to"`
	}
	if err := jsonbody.DecodeEvent(e, &in); err != nil {
		return request{}, err
	}
	asked, err := in.Order()
	switch {
	case err != nil:
		return request{}, err
	case in.To == nil:
		return request{}, errors.New("to: is missing")
	case *in.To == "" || len(*in.To) > maxRecipient:
		return request{}, fmt.Errorf("to: must have 1 to %d bytes", maxRecipient)
	case peer(owner, *in.To) == owner:
		return request{}, errors.New("to: must be somebody else")
	}
	return request{asked, *in.To}, nil
}

// maxRecipient is the maximum length of a recipient in bytes, which is OpenID Connect's limit
// for the claim sub.
const maxRecipient = 255
