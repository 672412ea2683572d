// Package decimal and the other package of its name have types of the same name. A service may
// replace one with the other.
package decimal

import "strconv"

type Decimal int64

func (d Decimal) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(d), 10), nil
}
