package emulator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What the HTTP API, the REST API and function URLs have in common.

// maxBodyBytes is API Gateway's payload quota. The 6 MB of Lambda apply to the
// event made of the request, and are checked there.
const maxBodyBytes = 10 * 1024 * 1024

// gatewayTime is the format of requestContext.time and requestTime.
const gatewayTime = "02/Jan/2006:15:04:05 -0700"

// hopByHop are headers of one connection (RFC 9110, section 7.6.1), in either
// direction; a length is given anew.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Content-Length": true,
}

// maxDrainBytes bounds what is read of a body that was refused, so that the
// client can finish sending and read the answer instead of a reset connection.
const maxDrainBytes = 64 * 1024 * 1024

func drained(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		_, _ = io.CopyN(io.Discard, r.Body, maxDrainBytes) // its end is an error too
	})
}

// errBodyTooLarge is a request body over maxBodyBytes.
var errBodyTooLarge = errors.New("the request body is too large")

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request body: %w", err)
	}
	if len(body) > maxBodyBytes {
		return nil, errBodyTooLarge
	}
	return body, nil
}

// forwarded returns the request's headers as API Gateway passes them on, with
// what it adds.
func forwarded(r *http.Request, bodyBytes int, traceID string) http.Header {
	h := http.Header{}
	for name, values := range r.Header {
		if !hopByHop[name] {
			h[name] = values
		}
	}
	_, port, _ := net.SplitHostPort(r.Host)
	if port == "" {
		port = "80"
	}
	h.Set("Host", r.Host)
	h.Set("Content-Length", strconv.Itoa(bodyBytes))
	h.Set("X-Amzn-Trace-Id", strings.SplitN(traceID, ";", 2)[0])
	h.Set("X-Forwarded-For", strings.Join(append(r.Header.Values("X-Forwarded-For"), sourceIP(r)), ", "))
	h.Set("X-Forwarded-Port", port)
	h.Set("X-Forwarded-Proto", "http")
	return h
}

func sourceIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// marshalEvent is json.Marshal without the escapes for HTML, which would count
// towards the 6 MB of an event.
func marshalEvent(event any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(event); err != nil {
		return nil, fmt.Errorf("encoding the event: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// integrate invokes the function behind a route. Past the integration's own
// timeout (0: it has none) the error is context.DeadlineExceeded and the
// function runs on, as it does behind API Gateway.
func (e *Emulator) integrate(p *pool, inv *invocation, event any, timeout time.Duration) (Result, error) {
	payload, err := marshalEvent(event)
	if err != nil {
		return Result{}, err
	}
	inv.payload = payload
	ctx := context.Background()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return e.invoke(ctx, p, inv)
}

// proxyResponse is what a function returns to a gateway.
type proxyResponse struct {
	StatusCode        json.RawMessage  `json:"statusCode"`
	Headers           map[string]any   `json:"headers"`
	MultiValueHeaders map[string][]any `json:"multiValueHeaders"`
	Cookies           []string         `json:"cookies"`
	Body              *string          `json:"body"`
	IsBase64Encoded   bool             `json:"isBase64Encoded"`
}

// status returns the status code, which may also be written as a string.
func (p *proxyResponse) status() (int, error) {
	status, err := strconv.Atoi(strings.Trim(string(p.StatusCode), `"`))
	if err != nil || status < 200 || status > 599 {
		return 0, fmt.Errorf("statusCode is %s, not a number from 200 to 599", p.StatusCode)
	}
	return status, nil
}

// body returns the body as bytes; decode says whether base64 counts here.
func (p *proxyResponse) body(decode bool) ([]byte, error) {
	if p.Body == nil {
		return nil, nil
	}
	if !p.IsBase64Encoded || !decode {
		return []byte(*p.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(*p.Body)
	if err != nil {
		return nil, fmt.Errorf("isBase64Encoded is true but the body is not base64: %w", err)
	}
	return body, nil
}

// headerText returns a header's value as text; a function may give a number or a
// boolean.
func headerText(name string, value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number:
		return value.String(), nil
	case bool:
		return strconv.FormatBool(value), nil
	default:
		return "", fmt.Errorf("the value of header %s is not text", name)
	}
}

// singleHeaders copies the headers field.
func (p *proxyResponse) singleHeaders(h http.Header) error {
	for name, value := range p.Headers {
		text, err := headerText(name, value)
		if err != nil {
			return err
		}
		h.Set(name, text)
	}
	return nil
}

func parseResponse(payload []byte) (*proxyResponse, error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	response := &proxyResponse{}
	if err := decoder.Decode(response); err != nil {
		return nil, fmt.Errorf("the function's response is not one for a gateway: %w", err)
	}
	return response, nil
}

// send writes a response; errors of the connection have no one to go to.
func send(w http.ResponseWriter, status int, header http.Header, body []byte) {
	for name, values := range header {
		if !hopByHop[name] {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// refuse writes an answer of the gateway itself.
func refuse(w http.ResponseWriter, status int, message string) {
	send(w, status, http.Header{"Content-Type": {"application/json"}}, mustJSON(map[string]string{"message": message}))
}
