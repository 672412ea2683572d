package lambdaidem

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// parseKey returns the key from the values of the key's header. If the header is absent, or
// if it contains an empty key, parseKey returns "" and no error. The caller must then refuse
// the request. If the header is malformed, parseKey returns an error that says why.
func parseKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", errors.New("it was sent more than once")
	}
	v := strings.Trim(values[0], " \t") // RFC 9110, 5.5: surrounding white space is not part of the value
	if len(v) > maxKeyHeader {
		return "", fmt.Errorf("it is longer than %d bytes", maxKeyHeader)
	}
	if strings.HasPrefix(v, `"`) {
		item, err := httpsfv.UnmarshalItem([]string{v})
		if err != nil {
			return "", errors.New("it begins with a double quote and is not one String of RFC 9651")
		}
		key, ok := item.Value.(string)
		if !ok {
			return "", errors.New("it is not a String of RFC 9651")
		}
		return key, nil
	}
	if strings.ContainsAny(v, `,"`) {
		// Gateways join repeated headers with commas.
		return "", errors.New("without quotes around it, it must not contain a comma or a double quote")
	}
	return v, nil
}

// maxKeyHeader is the maximum length of the key's header in bytes, checked before parsing. It
// leaves room for a key of 255 characters even if every character is escaped, for the quotes, and
// for the parameters that RFC 9651 allows after a String.
const maxKeyHeader = 1024
