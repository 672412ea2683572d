package idemtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// httpAnswer is an HTTP answer as a client gets it from the gateway or the
// server that took it. Headers are by lower-case name.
type httpAnswer struct {
	Status  int
	Reason  string // of a load balancer's status line
	Header  map[string][]string
	Trailer map[string][]string
	Body    string
	Base64  bool
}

// taken returns what becomes of a Lambda handler's answer: of an HTTP answer what its
// gateway takes, of any other its JSON.
func taken(t testing.TB, event, answer any, apart []string) any {
	t.Helper()
	switch a := answer.(type) {
	case events.APIGatewayProxyResponse:
		return httpAnswer{Status: a.StatusCode, Header: without(merged(a.Headers, a.MultiValueHeaders), apart), Body: a.Body, Base64: a.IsBase64Encoded}
	case events.APIGatewayV2HTTPResponse:
		return httpAnswer{Status: a.StatusCode, Header: without(withCookies(a.Headers, a.Cookies), apart), Body: a.Body, Base64: a.IsBase64Encoded}
	case events.LambdaFunctionURLResponse:
		return httpAnswer{Status: a.StatusCode, Header: without(withCookies(a.Headers, a.Cookies), apart), Body: a.Body, Base64: a.IsBase64Encoded}
	case events.ALBTargetGroupResponse:
		header := merged(a.Headers, nil)
		// A load balancer reads the map of the form that it sent ("Lambda
		// functions as targets for Application Load Balancers").
		if in, ok := event.(events.ALBTargetGroupRequest); ok && in.MultiValueHeaders != nil {
			header = merged(nil, a.MultiValueHeaders)
		}
		return httpAnswer{Status: a.StatusCode, Reason: a.StatusDescription, Header: without(header, apart), Body: a.Body, Base64: a.IsBase64Encoded}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatalf("encode the answer %T as JSON: %v", answer, err)
	}
	return string(text)
}

// merged returns what a REST API makes of its two maps: one list for each name, in
// which a value of both stands once ("Set up Lambda proxy integrations in API
// Gateway"). Names are put in order, since a map that has one name in two
// spellings has none.
func merged(single map[string]string, multi map[string][]string) map[string][]string {
	all := make(map[string][]string, len(single)+len(multi))
	for _, name := range slices.Sorted(maps.Keys(multi)) {
		lower := strings.ToLower(name)
		all[lower] = append(all[lower], multi[name]...)
	}
	listed := maps.Clone(all)
	for _, name := range slices.Sorted(maps.Keys(single)) {
		lower := strings.ToLower(name)
		if !slices.Contains(listed[lower], single[name]) {
			all[lower] = append(slices.Clip(all[lower]), single[name])
		}
	}
	return all
}

// withCookies returns what an answer of payload format 2.0 sends: the cookies are
// headers of their own ("Create AWS Lambda proxy integrations for HTTP APIs").
func withCookies(single map[string]string, cookies []string) map[string][]string {
	all := merged(single, nil)
	if len(cookies) > 0 {
		all["set-cookie"] = append(all["set-cookie"], cookies...)
	}
	return all
}

// answerOf returns the answer of a net/http handler.
func answerOf(r *http.Response, body []byte, apart []string) httpAnswer {
	return httpAnswer{Status: r.StatusCode, Header: without(merged(nil, r.Header), apart), Trailer: without(merged(nil, r.Trailer), apart), Body: string(body)}
}

// without leaves out the headers in which a replay may differ.
func without(header map[string][]string, apart []string) map[string][]string {
	delete(header, strings.ToLower(Mark))
	for _, name := range apart {
		delete(header, strings.ToLower(name))
	}
	return header
}
