package main

import (
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

const problemJSON = "application/problem+json"

// problem is an error answer: a problem document of RFC 9457 in the same shape
// as the guard's own.
type problem struct {
	status int
	code   string
	detail string // a sentence for the client; where a field is wrong, it begins with the field's name
}

func (p problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{"about:blank", http.StatusText(p.status), p.status, p.detail, p.code})
}

func (p problem) write(w http.ResponseWriter) {
	writeJSON(w, p.status, problemJSON, p)
}

func (p problem) event() events.APIGatewayV2HTTPResponse {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a number: can't happen
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: p.status, Headers: map[string]string{"Content-Type": problemJSON}, Body: string(body)}
}
