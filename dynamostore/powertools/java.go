package powertools

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// appendJava appends the data as Jackson's JsonNode.toString writes it.
func appendJava(b []byte, v *value) ([]byte, error) {
	switch v.kind {
	case kindNumber:
		number, err := javaNumber(v)
		return append(b, number...), err
	case kindString:
		return appendPlainString(b, v.text, "%04X"), nil
	case kindArray, kindObject:
		open, closing := byte('['), byte(']')
		if v.kind == kindObject {
			open, closing = '{', '}'
		}
		b = append(b, open)
		for i, element := range v.elements {
			if i > 0 {
				b = append(b, ',')
			}
			if v.kind == kindObject {
				b = append(appendPlainString(b, v.names[i], "%04X"), ':')
			}
			var err error
			if b, err = appendJava(b, element); err != nil {
				return nil, err
			}
		}
		return append(b, closing), nil
	default:
		return appendLiteral(b, v), nil
	}
}

// javaNumber returns a number as Double.toString or BigInteger.toString writes it. It returns an
// error for a double that versions of Java may write differently: before version 19, Java did
// not always write the fewest digits (JDK-4511638).
func javaNumber(v *value) (string, error) {
	if v.isInteger() {
		if v.text == "-0" {
			return "0", nil
		}
		return v.text, nil
	}
	f := float(v.text)
	if f == 0 {
		return withFraction(strconv.FormatFloat(f, 'f', -1, 64)), nil
	}
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(strconv.FormatFloat(f, 'f', -1, 64)), "0")
	if abs := math.Abs(f); abs < 1e-3 || abs >= 1e7 || len(digits) > 15 {
		return "", fmt.Errorf("versions of Java may write the number %s differently; set Selection.ID", v.text)
	}
	return withFraction(strconv.FormatFloat(f, 'f', -1, 64)), nil
}
