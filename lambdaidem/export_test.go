package lambdaidem

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// BareReplay returns functions that do what every replay of the answer costs at least. needed makes
// the request's fingerprint and its record's id, and decodes the answer. events reads the request's
// event, determines who sent it, and writes the answer's event.
func BareReplay(in events.APIGatewayV2HTTPRequest, status int, body string) (needed, events func()) {
	g := New(struct{ Store }{})
	ctx := context.Background()
	req := new(Request)
	httpAPI{}.request(&in, req)
	identity, _, refusal := g.identify(ctx, req)
	if refusal != nil {
		panic(refusal)
	}
	stored := encodeAnswer(&Response{Status: status, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: body})
	var resp *Response
	var err error
	needed = func() {
		if c := g.requestCall(identity, req); c.fingerprint == "" || c.id == "" {
			panic("there is no hash")
		}
		if resp, err = decodeAnswer(stored); err != nil {
			panic(err)
		}
	}
	events = func() {
		asked := new(Request)
		httpAPI{}.request(&in, asked)
		if _, _, refusal := g.identify(ctx, asked); g.bypasses(ctx, asked) || refusal != nil {
			panic("the request is not guarded")
		}
		if out := (httpAPI{}).event(&in, resp); out.StatusCode != status {
			panic("it is another answer")
		}
	}
	return needed, events
}

// WriteAnswer returns the text of a stored answer, and the text that encoding/json makes of it.
func WriteAnswer(r *Response, reason string, added, removed []string, trailer map[string][]string, beside map[string]string) (ours, theirs []byte) {
	own := *r
	own.reason, own.added, own.removed, own.trailer, own.fromHeaders = reason, added, removed, trailer, beside
	ours = encodeAnswer(&own)
	s := own.stored()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return ours, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// stored returns the answer in the form that earlier versions passed to encoding/json.
func (r *Response) stored() *storedAnswer {
	s := storedAnswer{StatusCode: &r.Status, StatusDescription: r.reason, Cookies: r.Cookies, Body: r.Body, IsBase64Encoded: r.Base64,
		Beside: r.fromHeaders, Added: r.added, Removed: r.removed, Trailers: r.trailer}
	s.Headers, s.MultiValueHeaders = splitHeaders(r.Header)
	inBytes := false
	looked := s
	looked.mapTexts(func(text string) (string, error) {
		inBytes = inBytes || !utf8.ValidString(text)
		return text, nil
	}, new(error))
	if inBytes {
		s.Bytes = true
		s.mapTexts(func(text string) (string, error) {
			return base64.StdEncoding.EncodeToString([]byte(text)), nil
		}, new(error))
	}
	return &s
}

// Ignores reports whether an observer ignores events of a kind with an error.
var Ignores = ignores

// Warnings is the default observer.
var Warnings Observer = warnings{}

// ReadAnswer reads a stored answer with the quick reader and with encoding/json.
func ReadAnswer(data []byte) (quick *Response, ok bool, whole *Response, err error) {
	quick, ok = readAnswer(string(data))
	whole, err = unmarshalAnswer(data)
	return quick, ok, whole, err
}

// ByCode returns a refusal of the guard as a typed handler returns it.
var ByCode = byCode
