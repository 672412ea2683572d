// Package order checks the part of a request body that payments and transfers have in
// common: an amount of money, a currency and a reference.
package order

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// Order is an amount of money with a reference, after all checks.
type Order struct {
	Amount    int64  `json:"amount"`    // minor units, such as cents; 1 to ledger.MaxAmount
	Currency  string `json:"currency"`  // three letters as in ISO 4217
	Reference string `json:"reference"` // optional, for the client's own use; at most 140 characters
}

// Fields are the members of an order in a request body. Decode them with package jsonbody,
// alone or embedded in a larger struct. A nil pointer means that the member is absent.
type Fields struct {
	Amount    *int64  `json:"amount"`
	Currency  *string `json:"currency"`
	Reference string  `json:"reference"`
}

// maxReference is the maximum length of a reference, in characters, as in a SEPA transfer.
const maxReference = 140

// Order checks the fields and returns the order. The text of an error begins with the
// field's name and may be sent to the client.
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

// isCurrency reports whether s has the form of an ISO 4217 code. It has no list of codes,
// because the list changes.
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
