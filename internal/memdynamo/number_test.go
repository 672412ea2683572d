package memdynamo

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNumberText(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0e99999999": "0", "00.100": "0.1", "0010": "10", "+5": "5", "5.": "5", ".5": "0.5", "-1.50": "-1.5",
		"1e3": "1000", "1E-3": "0.001", "12.5e1": "125", "123e-2": "1.23", "1e+5": "100000",
		"1e125": "1" + strings.Repeat("0", 125), "1e-130": "0." + strings.Repeat("0", 129) + "1",
		"1234567890123456789012345678901234567800": "1234567890123456789012345678901234567800",
	} {
		n, err := parseNumber(text)
		if err != nil || n.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, n, err, want)
		}
	}
	for text, want := range map[string]error{
		"": errNumberSyntax, "+": errNumberSyntax, ".": errNumberSyntax, "e5": errNumberSyntax, "1e": errNumberSyntax, "1e--5": errNumberSyntax,
		"1e-+5": errNumberSyntax, "1e+-5": errNumberSyntax, " 1": errNumberSyntax, "0x1": errNumberSyntax, "1_0": errNumberSyntax,
		"NaN": errNumberSyntax, "Infinity": errNumberSyntax, "1.2.3": errNumberSyntax, "١": errNumberSyntax,
		"1e126": errNumberOverflow, "1e99999999999999999999": errNumberOverflow, "1e-131": errNumberUnderflow, "1e-99999999999999999999": errNumberUnderflow,
		"123456789012345678901234567890123456789": errNumberPrecision,
	} {
		if n, err := parseNumber(text); !errors.Is(err, want) {
			t.Errorf("%s: got %s, %v; want %v", text, n, err, want)
		}
	}
}

// TestNumberAgainstRat compares the order and the sums of random numbers with math/big.
func TestNumberAgainstRat(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteByte('-')
		}
		for range 1 + r.IntN(8) {
			b.WriteByte(byte('0' + r.IntN(3)))
		}
		if r.IntN(2) == 0 {
			b.WriteByte('.')
			for range 1 + r.IntN(8) {
				b.WriteByte(byte('0' + r.IntN(3)))
			}
		}
		return b.String()
	}
	for range 20_000 {
		a, b := text(), text()
		x, y := mustNumber(a), mustNumber(b)
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		if x.cmp(y) != p.Cmp(q) {
			t.Fatalf("%s cmp %s is %d, want %d", a, b, x.cmp(y), p.Cmp(q))
		}
		sum, err := x.add(y)
		if err != nil {
			t.Fatalf("%s + %s: %v", a, b, err)
		}
		if got, _ := new(big.Rat).SetString(sum.String()); got.Cmp(p.Add(p, q)) != 0 {
			t.Fatalf("%s + %s is %s, want %s", a, b, sum, p.FloatString(20))
		}
	}
}

// TestNumberSize checks the sizes by which DynamoDB Local computes capacity.
func TestNumberSize(t *testing.T) {
	for text, want := range map[string]int{
		"0": 1, "1": 2, "12": 2, "123": 3, "-1": 3, "-12": 3, "-123": 4, "100": 2, "1000": 2, "10000": 2, "1e20": 2,
		"1.5": 3, "0.001": 2, "0.1": 2, "0.12": 2, "10.1": 3, "12.345": 4, "123456789": 6, "12345678901234567890123456789012345678": 20,
	} {
		if got := mustNumber(text).size(); got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
}
