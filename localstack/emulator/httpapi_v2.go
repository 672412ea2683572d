package emulator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// httpAPI is an API Gateway HTTP API with payload format 2.0.
type httpAPI struct {
	router   *router
	emulator *Emulator
	id       string
}

func (a *httpAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, parameters, found := a.router.find(r.Method, r.URL.Path)
	if !found {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	who, err := authorize(t.route, r)
	switch {
	case errors.Is(err, errForbidden):
		refuse(w, http.StatusForbidden, "Forbidden")
		return
	case err != nil:
		w.Header().Set("Www-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	body, err := readBody(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	inv := newInvocation(r.Context(), a.emulator.arn(t.pool.function.Name), nil)
	event := eventV2(r, body, inv)
	event.RouteKey = t.route.Key()
	event.PathParameters = parameters
	event.RequestContext.RouteKey = event.RouteKey
	event.RequestContext.AccountID = a.emulator.accountID()
	event.RequestContext.APIID = a.id
	event.RequestContext.DomainPrefix = a.id
	event.RequestContext.Stage = t.route.Stage
	// An HTTP API, unlike a REST API or a function URL, hands the path on
	// percent-decoded.
	event.RawPath = r.URL.Path
	event.RequestContext.HTTP.Path = r.URL.Path
	if who != nil {
		event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
				Claims: who.texts(bracketed), Scopes: who.scopes,
			},
		}
	}
	w.Header().Set("Apigw-Requestid", event.RequestContext.RequestID)
	result, err := a.emulator.integrate(t.pool, inv, event, t.route.Timeout)
	if err != nil {
		a.refuse(w, err)
		return
	}
	if result.FunctionError != "" {
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	if err := sendV2(w, result.Payload, "text/plain;charset=UTF-8"); err != nil {
		a.emulator.log.printf("%s %s: %v", a.id, t.route.Key(), err)
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
	}
}

// refuse maps what kept the function's answer away to an HTTP API's own.
func (a *httpAPI) refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrRequestTooLarge), errors.Is(err, errBodyTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrTooManyRequests), errors.Is(err, ErrClosed):
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
	default:
		a.emulator.log.printf("%s: %v", a.id, err)
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
	}
}

// eventV2 returns the part of payload format 2.0 that HTTP APIs and function URLs
// share.
func eventV2(r *http.Request, body []byte, inv *invocation) *events.APIGatewayV2HTTPRequest {
	now := time.Now().UTC()
	header := forwarded(r, len(body), inv.traceID)
	event := &events.APIGatewayV2HTTPRequest{
		Version:        "2.0",
		RawPath:        r.URL.EscapedPath(),
		RawQueryString: r.URL.RawQuery,
		Headers:        map[string]string{},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RequestID:  newUUID(),
			DomainName: r.Host,
			Time:       now.Format(gatewayTime),
			TimeEpoch:  now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method:    r.Method,
				Path:      r.URL.EscapedPath(),
				Protocol:  r.Proto,
				SourceIP:  sourceIP(r),
				UserAgent: r.UserAgent(),
			},
		},
	}
	for _, line := range header["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			event.Cookies = append(event.Cookies, strings.TrimSpace(cookie))
		}
	}
	delete(header, "Cookie")
	for name, values := range header {
		event.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if r.URL.RawQuery != "" {
		event.QueryStringParameters = map[string]string{}
		for name, values := range query(r.URL.RawQuery) {
			event.QueryStringParameters[name] = strings.Join(values, ",")
		}
	}
	event.Body, event.IsBase64Encoded = bodyV2(r.Header.Get("Content-Type"), body)
	return event
}

// query decodes a query string. What url.ParseQuery refuses (a bad escape, a
// semicolon) is left out by it and kept in rawQueryString.
func query(raw string) url.Values {
	values, _ := url.ParseQuery(raw)
	return values
}

// bodyV2 returns the body in payload format 2.0: text for text/* and for JSON, XML
// and JavaScript, base64 for every other type and for none. Bytes that are not
// UTF-8 are base64 whatever the type: a JSON event can't hold them otherwise.
func bodyV2(contentType string, body []byte) (string, bool) {
	if len(body) == 0 {
		return "", false
	}
	media, _, _ := mime.ParseMediaType(contentType)
	isText := strings.HasPrefix(media, "text/")
	switch media {
	case "application/json", "application/xml", "application/javascript":
		isText = true
	}
	if isText && utf8.Valid(body) {
		return string(body), false
	}
	return base64.StdEncoding.EncodeToString(body), true
}

// sendV2 writes a function's answer as payload format 2.0 reads it: valid JSON
// without a statusCode is itself the body, and multiValueHeaders count for
// nothing ("Create AWS Lambda proxy integrations for HTTP APIs"). An error
// means that nothing was written.
func sendV2(w http.ResponseWriter, payload []byte, defaultType string) error {
	if !json.Valid(payload) {
		return errors.New("the function's response is not JSON")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil || fields["statusCode"] == nil {
		body := payload
		var text string
		if err := json.Unmarshal(payload, &text); err == nil && payload[0] == '"' {
			body = []byte(text)
		}
		send(w, http.StatusOK, http.Header{"Content-Type": {"application/json"}}, body)
		return nil
	}
	response, err := parseResponse(payload)
	if err != nil {
		return err
	}
	status, err := response.status()
	if err != nil {
		return err
	}
	body, err := response.body(true)
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {defaultType}}
	if err := response.singleHeaders(header); err != nil {
		return err
	}
	for _, cookie := range response.Cookies {
		header.Add("Set-Cookie", cookie)
	}
	send(w, status, header, body)
	return nil
}
