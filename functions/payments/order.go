package main

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// order is what a client asks for.
type order struct {
	Amount    int64  // minor units: cents, say; 1 to ledger.MaxAmount
	Currency  string // three letters as in ISO 4217
	Reference string // optional, for the client's own use
}

// maxReference is the longest reference, in characters: as in a SEPA transfer.
const maxReference = 140

// parseOrder reads and checks a body. Its errors are sentences for the client
// that begin with the field's name.
func parseOrder(body []byte) (order, error) {
	var in struct {
		Amount    *int64  `json:"amount"`
		Currency  *string `json:"currency"`
		Reference string  `json:"reference"`
	}
	if err := jsonbody.Decode(body, &in); err != nil {
		return order{}, err
	}
	switch {
	case in.Amount == nil:
		return order{}, errors.New("amount: is missing")
	case *in.Amount < 1 || *in.Amount > ledger.MaxAmount:
		return order{}, fmt.Errorf("amount: must be 1 to %d, in minor units", int64(ledger.MaxAmount))
	case in.Currency == nil:
		return order{}, errors.New("currency: is missing")
	case !isCurrency(*in.Currency):
		return order{}, errors.New("currency: must be three capital letters as in ISO 4217, EUR say")
	case utf8.RuneCountInString(in.Reference) > maxReference:
		return order{}, fmt.Errorf("reference: must have at most %d characters", maxReference)
	case !isPrintable(in.Reference):
		return order{}, errors.New("reference: must have printable characters only")
	}
	return order{*in.Amount, *in.Currency, in.Reference}, nil
}

// isCurrency checks the form alone: which codes are in use changes by the year.
func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for _, c := range []byte(s) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

func isPrintable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
