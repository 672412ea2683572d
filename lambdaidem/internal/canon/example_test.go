package canon_test

import (
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

func ExampleAppend() {
	for _, src := range []string{
		`{"currency": "EUR", "amount": 10.50}`,
		`{"amount":10.50,"currency":"\u0045UR"}`,
		`{"amount":10.5,"currency":"EUR"}`,
		`{"amount":10,"amount":99}`,
	} {
		form, ok := canon.Append(nil, []byte(src), canon.Limits{})
		fmt.Printf("%v %s\n", ok, form)
	}
	// Output:
	// true {"amount":10.50,"currency":"EUR"}
	// true {"amount":10.50,"currency":"EUR"}
	// true {"amount":10.5,"currency":"EUR"}
	// false
}
