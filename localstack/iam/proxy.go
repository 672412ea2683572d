package iam

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Service is a service whose calls a [Proxy] checks.
type Service int

// The services. DynamoDB includes DynamoDB Streams.
const (
	DynamoDB Service = iota
	SQS
)

// Proxy forwards the calls of functions to a service, and refuses calls that the functions' roles
// do not allow. It changes nothing in a forwarded request but the access key ID, see
// [Checker.Start].
type Proxy struct {
	listener net.Listener
	server   *http.Server
	upstream *http.Transport
}

// Start starts a proxy for the service at the base URL endpoint. The proxy listens on a free port
// of 127.0.0.1. It recognizes a call of a function by the access key ID, see [AccessKeyID], and
// forwards all other calls unchecked. In a forwarded call of a function, accessKeyID replaces the
// function's access key ID. warnings receives a line for the first call of each kind that is
// refused or that AWS may refuse, and a line for each call that can't be read.
func (c *Checker) Start(service Service, endpoint, accessKeyID string, warnings io.Writer) (*Proxy, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("iam: the endpoint of the service: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("iam: a port to listen on: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.DisableCompression, transport.MaxIdleConns, transport.MaxIdleConnsPerHost = nil, true, 0, 256
	gate := &gate{checker: c, service: service, accessKeyID: accessKeyID, warnings: log.New(warnings, "iam: ", 0), pass: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Deliver the request even if its sender is killed meanwhile. The real service
			// receives such a request too.
			r.Out = r.Out.WithContext(context.WithoutCancel(r.Out.Context()))
		},
		// If the service can't be reached, break the connection to the sender too.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}}
	p := &Proxy{listener: listener, upstream: transport}
	p.server = &http.Server{Handler: gate, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = p.server.Serve(listener) }() // ends by Close
	return p, nil
}

// URL returns the base URL of the proxy, without a final slash.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.upstream.CloseIdleConnections()
	return err //nolint:wrapcheck // it never fails
}

// keyPrefix begins the access key ID of every function.
const keyPrefix = "Function"

// AccessKeyID returns the access key ID of a function's credentials, given its logical ID. Like
// a logical ID, it has only letters and digits.
func AccessKeyID(logicalID string) string { return keyPrefix + logicalID }

// scope matches the access key ID and the Region in the header Authorization of a signed
// request ("Create a signed AWS API request", under the credential scope).
var scope = regexp.MustCompile(`Credential=([^/,\s]+)/[0-9]+/([^/,\s]+)/`)

// gate is the HTTP handler of a proxy.
type gate struct {
	checker     *Checker
	service     Service
	accessKeyID string // replaces the access key ID of a function
	warnings    *log.Logger
	pass        http.Handler
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	function, region := g.sender(r)
	if function == "" {
		g.pass.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	signed := r.Header.Get("Authorization")
	r.Header.Set("Authorization", strings.Replace(signed, "Credential="+AccessKeyID(function)+"/", "Credential="+g.accessKeyID+"/", 1))
	requests, err := g.requests(r, region, body)
	if err != nil { // pass the request on, so that the service refuses it with its own error
		g.warnings.Printf("%s sent a request that can't be read, which is passed on: %v", function, err)
		g.pass.ServeHTTP(w, r)
		return
	}
	if refused := g.check(function, requests); refused != "" {
		g.refuse(w, r, refused)
		return
	}
	g.pass.ServeHTTP(w, r)
}

// check returns the message of the refusal if a function lacks one of the permissions that its
// call needs, and otherwise "". A refused call does not count as a use of the other permissions.
func (g *gate) check(function string, requests []Request) (refused string) {
	decisions := make([]Decision, len(requests))
	for i, r := range requests {
		decisions[i] = g.checker.Decide(function, r)
		if d := decisions[i]; !d.Allowed {
			if first := g.checker.count(function, r, d); first {
				g.warnings.Printf("%s was refused %s on %s: %s", function, r.Action, r.Resource, d.Reason)
			}
			return d.Message
		}
	}
	for i, r := range requests {
		d := decisions[i]
		if first := g.checker.count(function, r, d); first && d.Undecided != "" {
			g.warnings.Printf("%s was allowed %s on %s, but AWS may refuse it: %s", function, r.Action, r.Resource, d.Undecided)
		}
	}
	return ""
}

// sender returns the logical ID of the function that sent a request, and the Region that the
// request was signed for. Both are empty if the sender is not a function.
func (g *gate) sender(r *http.Request) (function, region string) {
	found := scope.FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil {
		return "", ""
	}
	logicalID, ok := strings.CutPrefix(found[1], keyPrefix)
	if !ok || g.checker.principals[logicalID] == nil {
		return "", ""
	}
	return logicalID, found[2]
}

// requests returns the permissions that a call needs.
func (g *gate) requests(r *http.Request, region string, body []byte) ([]Request, error) {
	account, target := g.checker.template.AccountID, r.Header.Get("X-Amz-Target")
	if g.service == SQS {
		operation, in, err := readSQS(target, body)
		if err != nil || operation == "" {
			return nil, errors.Join(err, errNoOperation)
		}
		return sqsRequests(operation, region, account, in), nil
	}
	_, operation, ok := strings.Cut(target, ".")
	if !ok {
		return nil, errNoOperation
	}
	return g.checker.dynamoDB.requests(operation, region, account, body)
}

var errNoOperation = errors.New("the request names no operation")

// refuse replies with the service's own error: status 400 for DynamoDB, 403 for SQS. In the JSON
// protocol of SQS, the SDKs take the error code from a header, where SQS puts the code of the
// query protocol.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, message string) {
	header, status := w.Header(), http.StatusBadRequest
	header.Set("Content-Type", "application/x-amz-json-1.0")
	body, err := json.Marshal(map[string]string{"__type": "com.amazon.coral.service#AccessDeniedException", "Message": message})
	if g.service == SQS {
		status = http.StatusForbidden
		if r.Header.Get("X-Amz-Target") == "" {
			header.Set("Content-Type", "text/xml")
			body, err = xml.Marshal(queryError{Type: "Sender", Code: "AccessDenied", Message: message})
		} else {
			header.Set("X-Amzn-Query-Error", "AccessDenied;Sender")
		}
	}
	if err != nil {
		panic(err) // can't happen: all values are strings
	}
	header.Set("X-Amzn-Requestid", "00000000-0000-0000-0000-000000000000")
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// queryError is an error in the query protocol of SQS.
type queryError struct {
	XMLName xml.Name `xml:"http://queue.amazonaws.com/doc/2012-11-05/ ErrorResponse"`
	Type    string   `xml:"Error>Type"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
}
