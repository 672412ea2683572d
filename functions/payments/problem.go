package main

import (
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

const problemJSON = "application/problem+json"

// problem is an error response: a problem document (RFC 9457) with the same members as those
// of the guard.
type problem struct {
	status int
	code   string // stable, for programs
	detail string // a sentence for the client; begins with the field's name if a field is invalid
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
		panic(err) // can't happen: p has only strings and a number
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: p.status, Headers: map[string]string{"Content-Type": problemJSON}, Body: string(body)}
}
