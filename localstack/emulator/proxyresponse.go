package emulator

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// proxyResponse is what a function returns to a gateway.
type proxyResponse struct {
	StatusCode        json.RawMessage  `json:"statusCode"`
	Headers           map[string]any   `json:"headers"`
	MultiValueHeaders map[string][]any `json:"multiValueHeaders"`
	Cookies           []string         `json:"cookies"`
	Body              *string          `json:"body"`
	IsBase64Encoded   bool             `json:"isBase64Encoded"`
}

func parseResponse(payload []byte) (*proxyResponse, error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	response := &proxyResponse{}
	if err := decoder.Decode(response); err != nil {
		return nil, fmt.Errorf("the function's response is not one for a gateway: %w", err)
	}
	return response, nil
}

// status returns the status code, which may also be written as a string.
func (p *proxyResponse) status() (int, error) {
	status, err := strconv.Atoi(strings.Trim(string(p.StatusCode), `"`))
	if err != nil || status < 200 || status > 599 {
		return 0, fmt.Errorf("statusCode is %s, not a number from 200 to 599", p.StatusCode)
	}
	return status, nil
}

// body returns the body as bytes; decode says whether base64 counts here.
func (p *proxyResponse) body(decode bool) ([]byte, error) {
	if p.Body == nil {
		return nil, nil
	}
	if !p.IsBase64Encoded || !decode {
		return []byte(*p.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(*p.Body)
	if err != nil {
		return nil, fmt.Errorf("isBase64Encoded is true but the body is not base64: %w", err)
	}
	return body, nil
}

// singleHeaders copies the headers field.
func (p *proxyResponse) singleHeaders(h http.Header) error {
	for name, value := range p.Headers {
		text, err := headerText(name, value)
		if err != nil {
			return err
		}
		h.Set(name, text)
	}
	return nil
}

// headerText returns a header's value as text; a function may give a number or a
// boolean.
func headerText(name string, value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number:
		return value.String(), nil
	case bool:
		return strconv.FormatBool(value), nil
	default:
		return "", fmt.Errorf("the value of header %s is not text", name)
	}
}
