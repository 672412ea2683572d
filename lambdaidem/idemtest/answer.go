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

// httpAnswer is an HTTP response as a client receives it from the gateway or the server.
// The names in Header and Trailer are in lower case.
type httpAnswer struct {
	Status  int
	Reason  string // the statusDescription of a load balancer's response, such as "200 OK"; empty for other sources
	Header  map[string][]string
	Trailer map[string][]string
	Body    string
	Base64  bool // Body is encoded as base64
}

// received returns what the client receives when a Lambda handler returns answer for event, in a
// form that can be compared. For an HTTP response, this is an httpAnswer without [Mark] and the
// headers named in ignoreHeaders. For any other response, it is the JSON text.
func received(t testing.TB, event, answer any, ignoreHeaders []string) any {
	t.Helper()
	switch a := answer.(type) {
	case events.APIGatewayProxyResponse:
		return httpAnswer{Status: a.StatusCode, Header: without(merged(a.Headers, a.MultiValueHeaders), ignoreHeaders), Body: a.Body, Base64: a.IsBase64Encoded}
	case events.APIGatewayV2HTTPResponse:
		return httpAnswer{Status: a.StatusCode, Header: without(withCookies(a.Headers, a.Cookies), ignoreHeaders), Body: a.Body, Base64: a.IsBase64Encoded}
	case events.LambdaFunctionURLResponse:
		return httpAnswer{Status: a.StatusCode, Header: without(withCookies(a.Headers, a.Cookies), ignoreHeaders), Body: a.Body, Base64: a.IsBase64Encoded}
	case events.ALBTargetGroupResponse:
		header := merged(a.Headers, nil)
		// If the request has MultiValueHeaders, a load balancer reads only MultiValueHeaders of the
		// response. Otherwise it reads only Headers ("Lambda functions as targets for Application
		// Load Balancers").
		if in, ok := event.(events.ALBTargetGroupRequest); ok && in.MultiValueHeaders != nil {
			header = merged(nil, a.MultiValueHeaders)
		}
		return httpAnswer{Status: a.StatusCode, Reason: a.StatusDescription, Header: without(header, ignoreHeaders), Body: a.Body, Base64: a.IsBase64Encoded}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatalf("encode the answer %T as JSON: %v", answer, err)
	}
	return string(text)
}

// merged combines the two maps of headers in a response into one map, with a list of values for
// each name. A value that both maps have for a name is listed only once, as in a REST API ("Set up
// Lambda proxy integrations in API Gateway").
func merged(single map[string]string, multi map[string][]string) map[string][]string {
	all := make(map[string][]string, len(single)+len(multi))
	// One map may have a name in two capitalizations. Sort the names, so that the order of values
	// is not random.
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

// withCookies returns the headers and the cookies of a response in payload format version 2.0 as
// one map. The cookies become values of the header Set-Cookie. That format has a separate list of
// cookies (API Gateway, "Create AWS Lambda proxy integrations for HTTP APIs").
func withCookies(single map[string]string, cookies []string) map[string][]string {
	all := merged(single, nil)
	if len(cookies) > 0 {
		all["set-cookie"] = append(all["set-cookie"], cookies...)
	}
	return all
}

// answerOf returns the response of a net/http handler in a form that can be compared, without
// [Mark] and the headers named in ignoreHeaders.
func answerOf(r *http.Response, body []byte, ignoreHeaders []string) httpAnswer {
	return httpAnswer{Status: r.StatusCode, Header: without(merged(nil, r.Header), ignoreHeaders), Trailer: without(merged(nil, r.Trailer), ignoreHeaders), Body: string(body)}
}

// without removes [Mark] and the headers named in ignoreHeaders from header, and returns header. In
// these headers, a replay may differ from the first response.
func without(header map[string][]string, ignoreHeaders []string) map[string][]string {
	delete(header, strings.ToLower(Mark))
	for _, name := range ignoreHeaders {
		delete(header, strings.ToLower(name))
	}
	return header
}
