package iam

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
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
