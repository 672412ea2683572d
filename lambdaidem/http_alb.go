package lambdaidem

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// ALBHandler is a handler of requests that come through an Application Load Balancer.
type ALBHandler = func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error)

// ALB guards a handler of Application Load Balancer events, with or without multi-value headers. A
// load balancer has no route templates, so the path of the request is part of the record's
// identity.
//
// The guard does not identify the caller. A load balancer can name the caller in a header, but the
// guard does not verify that header's signature. Unless Options.Principal says who the caller is,
// requests of two callers with the same key and path count as the same request.
func (g *Guard) ALB(h ALBHandler) ALBHandler {
	return guardHTTP(g, loadBalancer{}, h)
}

type loadBalancer struct{}

// multiValue reports whether multi-value headers are enabled for the target group. The load
// balancer then expects them in the response too ("Lambda functions as targets for
// Application Load Balancers").
func (loadBalancer) multiValue(e *events.ALBTargetGroupRequest) bool {
	return e.MultiValueHeaders != nil
}

func (loadBalancer) request(e *events.ALBTargetGroupRequest, r *Request) {
	*r = Request{
		Method: strings.ToUpper(e.HTTPMethod),
		Path:   e.Path,
		// A load balancer passes query parameters on without decoding their escapes.
		Query:    queryOf(e.MultiValueQueryStringParameters, e.QueryStringParameters, false),
		headers:  headers{multi: e.MultiValueHeaders, single: e.Headers},
		nHeaders: max(len(e.Headers), len(e.MultiValueHeaders)),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
}

func (c loadBalancer) response(e *events.ALBTargetGroupRequest, r events.ALBTargetGroupResponse) Response {
	resp := Response{Status: r.StatusCode, reason: r.StatusDescription, Body: r.Body, Base64: r.IsBase64Encoded}
	if c.multiValue(e) {
		resp.Header = joinHeaders(nil, r.MultiValueHeaders)
	} else {
		resp.Header = joinHeaders(r.Headers, nil)
	}
	return resp
}

func (c loadBalancer) event(e *events.ALBTargetGroupRequest, r *Response) events.ALBTargetGroupResponse {
	out := events.ALBTargetGroupResponse{StatusCode: r.Status, StatusDescription: r.reason, Body: r.Body, IsBase64Encoded: r.Base64}
	if c.multiValue(e) {
		out.MultiValueHeaders = withCookies(r)
		return out
	}
	headers, cookies := joined(withCookies(r))
	for i, c := range cookies {
		headers[cookieName(i)] = c
	}
	out.Headers = headers
	return out
}

// statusLine returns a status code with its text, such as "200 OK". The guard uses it as the
// statusDescription of a response to a load balancer.
func statusLine(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// cookieName returns the name set-cookie in a different mixture of upper and lower case for each i
// below 512. Without multi-value headers, a response has one value for each spelling of a name.
// Several cookies can't be joined into one value (RFC 6265, section 3), so they need several
// spellings.
func cookieName(i int) string {
	name := []byte("set-cookie")
	for at := range name {
		if name[at] == '-' {
			continue
		}
		if i&1 == 1 {
			name[at] -= 'a' - 'A'
		}
		i >>= 1
	}
	return string(name)
}
