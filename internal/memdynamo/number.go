package memdynamo

import (
	"math/big"
	"strconv"
	"strings"
)

// The limits of DynamoDB for a number ("Supported data types and naming rules", section Number):
// 38 significant digits, and a magnitude from 1E-130 up to
// 9.9999999999999999999999999999999999999E+125. The exponents here are those of 0.digits ×
// 10^exp; see number.
const (
	maxDigits   = 38
	maxExponent = 126  // as in 0.999… × 10^126
	minExponent = -129 // as in 0.1 × 10^-129
)

const (
	errNumberSyntax    = validationError("The parameter cannot be converted to a numeric value")
	errNumberPrecision = validationError("Attempting to store more than 38 significant digits in a Number")
	errNumberOverflow  = validationError("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errNumberUnderflow = validationError("Number underflow. Attempting to store a number with magnitude smaller than supported range")
)

// number is an exact decimal number: ± 0.digits × 10^exp. The digits neither begin nor end with a
// zero, so equal numbers have equal fields. Zero has no digits.
type number struct {
	neg    bool
	digits string
	exp    int
}

// parseNumber parses DynamoDB's syntax of numbers: an optional sign, decimal digits with an
// optional point, and an optional exponent. It returns an error if the syntax is wrong or the
// number exceeds the limits.
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
		if err != nil || shift > 1<<20 || shift < -1<<20 { // far beyond the limits
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

// check returns an error if DynamoDB can't store n.
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

// String returns the plain decimal text in which DynamoDB returns a number: without an exponent,
// and "leading and trailing zeroes are trimmed".
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

// cmp returns -1, 0 or 1 if n is less than, equal to or greater than m.
func (n number) cmp(m number) int {
	if n.sign() != m.sign() {
		return sign(n.sign() - m.sign())
	}
	c := sign(n.exp - m.exp)
	if n.digits == "" {
		return 0
	}
	if c == 0 {
		c = strings.Compare(n.digits, m.digits) // without zeros at the ends, the order of texts is that of numbers
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

// add returns n + m. It returns an error if the exact sum exceeds the limits, because DynamoDB
// does not round sums.
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

// scaled returns n / 10^scale, which must be an integer.
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

// size returns the bytes that the number counts for in the size of an item: one, plus one for
// each pair of digits, where pairs are counted from the decimal point, plus one for a minus sign
// ("DynamoDB Item sizes and formats"). Zero counts for one byte.
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

// floorHalf returns ⌊i/2⌋.
func floorHalf(i int) int { return i >> 1 }
