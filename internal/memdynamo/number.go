package memdynamo

import (
	"math/big"
	"strconv"
	"strings"
)

// DynamoDB's limits on a number ("Supported data types and naming rules",
// section Number): 38 significant digits, and a magnitude from 1E-130 up to
// 9.9999999999999999999999999999999999999E+125.
const (
	maxDigits   = 38
	maxExponent = 126  // of 0.999… × 10^126
	minExponent = -129 // of 0.1 × 10^-129
)

const (
	errNumberSyntax    = validationError("The parameter cannot be converted to a numeric value")
	errNumberPrecision = validationError("Attempting to store more than 38 significant digits in a Number")
	errNumberOverflow  = validationError("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errNumberUnderflow = validationError("Number underflow. Attempting to store a number with magnitude smaller than supported range")
)

// number is an exact decimal: ± 0.digits × 10^exp. The digits have no zeros at
// either end, so that equal numbers have equal fields; zero has no digits.
type number struct {
	neg    bool
	digits string
	exp    int
}

// parseNumber reads DynamoDB's number syntax: an optional sign, decimal digits
// with an optional point, an optional exponent.
func parseNumber(s string) (number, error) {
	rest := s
	neg := strings.HasPrefix(rest, "-")
	if neg || strings.HasPrefix(rest, "+") {
		rest = rest[1:]
	}
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i+1:]
		if !isDigits(strings.TrimPrefix(strings.TrimPrefix(exponent, "-"), "+")) || strings.HasPrefix(exponent, "-+") {
			return number{}, errNumberSyntax
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if !isDigits(whole + fraction) {
		return number{}, errNumberSyntax
	}

	digits := strings.TrimLeft(whole+fraction, "0")
	exp := len(whole) - (len(whole) + len(fraction) - len(digits))
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return number{}, nil
	}
	if exponent != "" {
		shift, err := strconv.Atoi(exponent)
		if err != nil || shift > 1<<20 || shift < -1<<20 { // far outside of any supported magnitude
			if strings.HasPrefix(exponent, "-") {
				return number{}, errNumberUnderflow
			}
			return number{}, errNumberOverflow
		}
		exp += shift
	}
	n := number{neg: neg, digits: digits, exp: exp}
	return n, n.check()
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// check reports whether DynamoDB can store n.
func (n number) check() error {
	switch {
	case n.digits == "":
		return nil
	case n.exp > maxExponent:
		return errNumberOverflow
	case n.exp < minExponent:
		return errNumberUnderflow
	case len(n.digits) > maxDigits:
		return errNumberPrecision
	}
	return nil
}

// String returns the plain decimal text in which DynamoDB returns a number:
// "leading and trailing zeroes are trimmed", no exponent.
func (n number) String() string {
	var s string
	switch {
	case n.digits == "":
		return "0"
	case n.exp <= 0:
		s = "0." + strings.Repeat("0", -n.exp) + n.digits
	case n.exp >= len(n.digits):
		s = n.digits + strings.Repeat("0", n.exp-len(n.digits))
	default:
		s = n.digits[:n.exp] + "." + n.digits[n.exp:]
	}
	if n.neg {
		return "-" + s
	}
	return s
}

// cmp is -1, 0 or 1 as n is less than, equal to or greater than m.
func (n number) cmp(m number) int {
	if n.sign() != m.sign() {
		return sign(n.sign() - m.sign())
	}
	c := sign(n.exp - m.exp)
	if n.digits == "" {
		return 0
	}
	if c == 0 {
		c = strings.Compare(n.digits, m.digits) // no zeros at the ends: text order is number order
	}
	return c * n.sign()
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.neg:
		return -1
	}
	return 1
}

func sign(i int) int {
	switch {
	case i < 0:
		return -1
	case i > 0:
		return 1
	}
	return 0
}

// add is n + m, exact or refused: DynamoDB does not round a sum.
func (n number) add(m number) (number, error) {
	scale := min(n.exp-len(n.digits), m.exp-len(m.digits))
	sum := new(big.Int).Add(n.scaled(scale), m.scaled(scale))
	text := sum.String()
	neg := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	digits := strings.TrimRight(text, "0")
	if digits == "" {
		return number{}, nil
	}
	out := number{neg: neg, digits: digits, exp: len(text) + scale}
	return out, out.check()
}

// scaled is n as an integer count of 10^scale.
func (n number) scaled(scale int) *big.Int {
	i := new(big.Int)
	if n.digits == "" {
		return i
	}
	i.SetString(n.digits+strings.Repeat("0", n.exp-len(n.digits)-scale), 10)
	if n.neg {
		i.Neg(i)
	}
	return i
}

func (n number) negated() number {
	n.neg = !n.neg && n.digits != ""
	return n
}

// size returns what the number takes of an item, in bytes: one, and one for each two
// digits counted in pairs from the decimal point, and one for a minus sign
// ("DynamoDB Item sizes and formats"; zero takes one).
func (n number) size() int {
	if n.digits == "" {
		return 1
	}
	first := floorHalf(n.exp - 1)
	last := floorHalf(n.exp - len(n.digits))
	size := 1 + first - last + 1
	if n.neg {
		size++
	}
	return size
}

// floorHalf is ⌊i/2⌋.
func floorHalf(i int) int { return i >> 1 }
