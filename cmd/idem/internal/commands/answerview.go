package commands

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// answerView is a record's stored answer, decoded for output. Which fields are set depends
// on the kind of the record.
type answerView struct {
	Outcome lambdaidem.Outcome `json:"outcome,omitempty"`

	// The response, for a record of an HTTP request.
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Cookies []string            `json:"cookies,omitempty"`
	Body    string              `json:"body,omitempty"`
	Base64  bool                `json:"base64,omitempty"` // Body is in base64, because it is binary

	Value   json.RawMessage     `json:"value,omitempty"`
	Failure *lambdaidem.Failure `json:"failure,omitempty"`

	// Unreadable says why the answer can't be shown; "" if it can.
	Unreadable string `json:"unreadable,omitempty"`
}

// answerOf decodes the result of a record of the given kind.
func answerOf(kind lambdaidem.RecordKind, r lambdaidem.Result) *answerView {
	v := &answerView{Outcome: r.Outcome, Failure: r.Failure}
	switch {
	case r.Failure != nil:
	case kind == lambdaidem.RecordHTTP:
		resp, err := lambdaidem.DecodeAnswer(r.Value)
		if err != nil {
			v.Unreadable = err.Error()
			break
		}
		v.Status, v.Headers, v.Cookies, v.Body, v.Base64 = resp.Status, resp.Header, resp.Cookies, resp.Body, resp.Base64
		if !utf8.ValidString(v.Body) {
			v.Body, v.Base64 = base64.StdEncoding.EncodeToString([]byte(v.Body)), true
		}
	case len(r.Value) > 0:
		v.Value = asJSON(r.Value)
	}
	return v
}

// rows adds the rows for the answer to a table.
func (v *answerView) rows(w *table) {
	switch {
	case v.Unreadable != "":
		w.row("answer", "can't be read: %s", clip(v.Unreadable))
	case v.Failure != nil && v.Failure.Code == lambdaidem.ErrAnswerUnavailable:
		w.row("answer", "none: %s", clip(v.Failure.Message))
	case v.Failure != nil:
		w.row("answer", "%s failure %s (%d, %s): %s", v.Outcome, clip(string(v.Failure.Code)), v.Failure.Status, clip(v.Failure.Type), clip(v.Failure.Message))
	case v.Status != 0:
		w.row("answer", "%s, status %d", v.Outcome, v.Status)
		for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
			for _, value := range v.Headers[name] {
				w.row("header", "%s: %s", clip(name), clip(value))
			}
		}
		for _, cookie := range v.Cookies {
			w.row("cookie", "%s", clip(cookie))
		}
		if v.Base64 {
			w.row("body", "(base64) %s", clip(v.Body))
		} else {
			w.row("body", "%s", clip(v.Body))
		}
	default:
		w.row("answer", "%s: %s", v.Outcome, clip(string(v.Value)))
	}
}
