// Package order reads what a client asks for: an amount of money, and what for.
package order

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// Order is what a client asks for.
type Order struct {
	Amount    int64  `json:"amount"`    // minor units: cents, say; 1 to ledger.MaxAmount
	Currency  string `json:"currency"`  // three letters as in ISO 4217
	Reference string `json:"reference"` // optional, for the client's own use
}

// Fields are an order as it stands in a body, to be decoded by package jsonbody
// by themselves or as a part of more.
type Fields struct {
	Amount    *int64  `json:"amount"`
	Currency  *string `json:"currency"`
	Reference string  `json:"reference"`
}

// maxReference is the longest reference, in characters: as in a SEPA transfer.
const maxReference = 140

// Order checks the fields. Its errors are sentences for the client that begin
// with the field's name.
func (f Fields) Order() (Order, error) {
	switch {
	case f.Amount == nil:
		return Order{}, errors.New("amount: is missing")
	case *f.Amount < 1 || *f.Amount > ledger.MaxAmount:
		return Order{}, fmt.Errorf("amount: must be 1 to %d, in minor units", int64(ledger.MaxAmount))
	case f.Currency == nil:
		return Order{}, errors.New("currency: is missing")
	case !isCurrency(*f.Currency):
		return Order{}, errors.New("currency: must be three capital letters as in ISO 4217, EUR say")
	case utf8.RuneCountInString(f.Reference) > maxReference:
		return Order{}, fmt.Errorf("reference: must have at most %d characters", maxReference)
	case !isPrintable(f.Reference):
		return Order{}, errors.New("reference: must have printable characters only")
	}
	return Order{*f.Amount, *f.Currency, f.Reference}, nil
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
