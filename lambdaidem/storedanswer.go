package lambdaidem

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// storedAnswer is the JSON form of an HTTP response in a record. It has the shape of API Gateway's
// proxy response, so that an operator can read it in the table.
type storedAnswer struct {
	StatusCode        *int                `json:"statusCode"` // nil after decoding JSON that is not an HTTP response
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded,omitempty"`
	// Beside is set for a REST API response that has a header in both of its maps, Headers and
	// MultiValueHeaders, ignoring case. Beside has the header's value from Headers. The values from
	// MultiValueHeaders are stored like those of any other header. A replay sends both maps,
	// because the gateway decides how to combine their values.
	Beside map[string]string `json:"beside,omitempty"`
	// Added lists the stored headers that a replay adds to the response. If an outer handler, such as
	// middleware, has already set such a header, the response has the values of both. Any other
	// stored header replaces what outer handlers have set. Added is set only for net/http responses.
	Added []string `json:"added,omitempty"`
	// Removed lists the names of headers that an outer handler had set and that the guarded handler
	// then deleted. A replay deletes these headers too. Removed is set only for net/http responses.
	Removed []string `json:"removed,omitempty"`
	// Trailers has the header fields that follow the body. It is set only for net/http responses.
	Trailers map[string][]string `json:"trailers,omitempty"`
	// Bytes reports whether the strings of this answer are stored in base64. This applies to the
	// body, the status description, the cookies, and the values of headers and trailers, but never
	// to names. Bytes is set if at least one of these strings is not valid UTF-8, because JSON
	// can't represent such a string.
	Bytes bool `json:"bytes,omitempty"`
}

func encodeAnswer(r *Response) []byte {
	quotes := strings.Count(r.Body, `"`) // a JSON body has many quotes, and each is escaped
	return r.appendTo(make([]byte, 0, len(r.Body)+quotes+256))
}

func decodeAnswer(data []byte) (*Response, error) {
	if r, ok := readAnswer(string(data)); ok {
		return r, nil
	}
	return unmarshalAnswer(data)
}

// unmarshalAnswer decodes a stored response of any form, with encoding/json. decodeAnswer calls it
// only if the faster readAnswer can't decode the response.
func unmarshalAnswer(data []byte) (*Response, error) {
	var s storedAnswer
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decode the stored answer: %w", err)
	}
	if s.StatusCode == nil {
		return nil, errors.New("decode the stored answer: it is no HTTP answer")
	}
	if s.Bytes {
		var failed error
		s.mapTexts(func(text string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(text)
			return string(b), err
		}, &failed)
		if failed != nil {
			return nil, fmt.Errorf("decode the stored answer: %w", failed)
		}
	}
	return &Response{Status: *s.StatusCode, reason: s.StatusDescription, Header: joinHeaders(s.Headers, s.MultiValueHeaders),
		Cookies: s.Cookies, Body: s.Body, Base64: s.IsBase64Encoded,
		fromHeaders: s.Beside, added: s.Added, removed: s.Removed, trailer: s.Trailers}, nil
}
