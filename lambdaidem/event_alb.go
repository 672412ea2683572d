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

// ALB guards a handler of Application Load Balancer events, with single- or
// multi-value headers, whichever the target group sends. A load balancer
// has no route templates, so the concrete path stands in, and vouches for
// nobody that a signature wouldn't have to prove: set Options.Principal where
// callers must be kept apart.
func (g *Guard) ALB(h ALBHandler) ALBHandler {
	return guardHTTP(g, loadBalancer{}, h)
}

type loadBalancer struct{}

// multiValue reports whether the target group has multi-value headers enabled;
// it reads the answer's headers in the same form ("Lambda functions as targets
// for Application Load Balancers").
func (loadBalancer) multiValue(e *events.ALBTargetGroupRequest) bool {
	return e.MultiValueHeaders != nil
}

func (loadBalancer) request(e *events.ALBTargetGroupRequest, r *Request) {
	*r = Request{
		Method: strings.ToUpper(e.HTTPMethod),
		Path:   e.Path,
		// A load balancer leaves the parameters as they were escaped.
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

// statusLine returns a status with its text: "200 OK".
func statusLine(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// cookieName is Set-Cookie in a spelling of its own for each i: without
// multi-value headers that is the one way to answer with several cookies, since
// they can't be joined (RFC 6265, section 3).
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
