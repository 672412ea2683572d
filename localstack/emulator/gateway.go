package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What the HTTP API, the REST API and function URLs have in common.

// gatewayTime is the format of requestContext.time and requestTime.
const gatewayTime = "02/Jan/2006:15:04:05 -0700"

// hopByHop are headers of one connection (RFC 9110, section 7.6.1), in either
// direction; a length is given anew.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Content-Length": true,
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
