//go:build !linux

package quota

import "errors"

// Period is the time in microseconds within which a process gets its share of a core.
const Period = 20_000

// Limit returns an error, because processor time can be limited only on Linux.
func Limit(int) (leave func() error, err error) {
	return nil, errors.New("processor time can be limited on Linux alone")
}
