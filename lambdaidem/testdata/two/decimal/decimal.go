// Package decimal has a type with the name of one in the other package decimal.
package decimal

import "strconv"

type Decimal int64

func (d Decimal) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(d), 'f', 2, 64), nil
}
