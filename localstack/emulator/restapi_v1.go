package emulator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// restAPI is an API Gateway REST API with Lambda proxy integrations, payload
// format 1.0.
type restAPI struct {
	router   *router
	emulator *Emulator
	id       string
}

func (a *restAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, parameters, found := a.router.find(r.Method, r.URL.EscapedPath())
	if !found { // what a REST API says of a path that it does not have
		w.Header().Set("X-Amzn-Errortype", "MissingAuthenticationTokenException")
		refuse(w, http.StatusForbidden, "Missing Authentication Token")
		return
	}
	who, err := authorize(t.route, r)
	switch {
	case errors.Is(err, errForbidden):
		refuse(w, http.StatusForbidden, "Forbidden")
		return
	case err != nil:
		w.Header().Set("X-Amzn-Errortype", "UnauthorizedException")
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	body, err := readBody(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	inv := newInvocation(r.Context(), a.emulator.arn(t.pool.function.Name), nil)
	event := a.event(r, body, inv, t, parameters)
	if who != nil {
		event.RequestContext.Authorizer = map[string]any{"claims": who.texts(commas)}
	}
	w.Header().Set("X-Amzn-Requestid", event.RequestContext.RequestID)
	result, err := a.emulator.integrate(t.pool, inv, event, t.route.Timeout)
	if err != nil {
		a.refuse(w, err)
		return
	}
	if result.FunctionError == "" {
		err = sendV1(w, r, result.Payload, t.route.BinaryMediaTypes)
	} else {
		err = fmt.Errorf("function error: %s", result.Payload)
	}
	if err != nil {
		a.emulator.log.printf("%s %s: %v", a.id, t.route.Key(), err)
		refuse(w, http.StatusBadGateway, "Internal server error")
	}
}

// refuse maps what kept the function's answer away to a REST API's own.
func (a *restAPI) refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrRequestTooLarge), errors.Is(err, errBodyTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "Request Too Long")
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusGatewayTimeout, "Endpoint request timed out")
	default: // Lambda refused the invocation
		a.emulator.log.printf("%s: %v", a.id, err)
		refuse(w, http.StatusInternalServerError, "Internal server error")
	}
}

func (a *restAPI) event(r *http.Request, body []byte, inv *invocation, t target, parameters map[string]string) *events.APIGatewayProxyRequest {
	now := time.Now().UTC()
	header := forwarded(r, len(body), inv.traceID)
	path := r.URL.EscapedPath()
	event := &events.APIGatewayProxyRequest{
		Resource:          t.route.Path,
		Path:              path,
		HTTPMethod:        r.Method,
		MultiValueHeaders: header,
		Headers:           last(header),
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID:         a.emulator.accountID(),
			APIID:             a.id,
			Stage:             t.route.Stage,
			DomainName:        r.Host,
			DomainPrefix:      a.id,
			RequestID:         newUUID(),
			ExtendedRequestID: randomHex(8),
			Protocol:          r.Proto,
			ResourceID:        randomHex(3),
			ResourcePath:      t.route.Path,
			Path:              "/" + t.route.Stage + path,
			HTTPMethod:        r.Method,
			RequestTime:       now.Format(gatewayTime),
			RequestTimeEpoch:  now.UnixMilli(),
			Identity: events.APIGatewayRequestIdentity{
				SourceIP: sourceIP(r), UserAgent: r.UserAgent(),
			},
		},
	}
	if len(parameters) > 0 {
		event.PathParameters = parameters
	}
	if values := query(r.URL.RawQuery); len(values) > 0 {
		event.MultiValueQueryStringParameters = values
		event.QueryStringParameters = last(values)
	}
	event.Body = string(body) // what is not UTF-8 is lost, as it is behind API Gateway
	if len(body) > 0 && isBinary(r.Header.Get("Content-Type"), t.route.BinaryMediaTypes) {
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return event
}

// last keeps the last value of each name, as the single-value fields do.
func last(values map[string][]string) map[string]string {
	out := map[string]string{}
	for name, list := range values {
		if len(list) > 0 {
			out[name] = list[len(list)-1]
		}
	}
	return out
}

// isBinary reports whether a media type is one of the API's binary ones.
func isBinary(contentType string, binary []string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = contentType
	}
	for _, pattern := range binary {
		kind, wildcard := strings.CutSuffix(pattern, "/*")
		if pattern == "*/*" || strings.EqualFold(pattern, media) ||
			wildcard && strings.HasPrefix(strings.ToLower(media), strings.ToLower(kind)+"/") {
			return true
		}
	}
	return false
}

// sendV1 writes a function's answer as payload format 1.0 reads it. Base64 is
// decoded only where the client accepts one of the API's binary types, by the
// first type in its Accept header ("Return binary media from a Lambda proxy
// integration in API Gateway"). An error means that nothing was written.
func sendV1(w http.ResponseWriter, r *http.Request, payload []byte, binary []string) error {
	response, err := parseResponse(payload)
	if err != nil {
		return err
	}
	status, err := response.status()
	if err != nil {
		return err
	}
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	body, err := response.body(isBinary(strings.TrimSpace(accept), binary))
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if err := response.singleHeaders(header); err != nil {
		return err
	}
	// Where a header is in both fields, the multi-value one counts.
	for name, values := range response.MultiValueHeaders {
		header.Del(name)
		for _, value := range values {
			text, err := headerText(name, value)
			if err != nil {
				return err
			}
			header.Add(name, text)
		}
	}
	send(w, status, header, body)
	return nil
}
