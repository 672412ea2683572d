package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

// distant is a TLS server in front of DynamoDB Local, with a slow network in front of the server.
type distant struct {
	server *httptest.Server
	far    net.Listener // the far end of the network: it passes bytes on to server
}

// newDistant starts a server that passes requests on to the endpoint. A round trip through its
// network takes at least the time roundTrip.
func newDistant(ctx context.Context, endpoint string, roundTrip time.Duration) (*distant, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("the database's endpoint: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorLog: log.New(io.Discard, "", 0), // clients may close connections at any time
	}
	d := &distant{server: httptest.NewUnstartedServer(proxy)}
	d.server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	d.server.StartTLS()
	if d.far, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		d.server.Close()
		return nil, err
	}
	go d.accept(ctx, roundTrip)
	return d, nil
}

// endpoint returns the URL by which clients reach the server through the slow network.
func (d *distant) endpoint() string { return "https://" + d.far.Addr().String() }

// writeCertificate writes the server's certificate to a PEM file, which AWS_CA_BUNDLE can name.
func (d *distant) writeCertificate(file string) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.server.Certificate().Raw}), 0o600)
}

func (d *distant) close() {
	_ = d.far.Close()
	d.server.CloseClientConnections()
	d.server.Close()
}

func (d *distant) accept(ctx context.Context, roundTrip time.Duration) {
	for {
		client, err := d.far.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			time.Sleep(roundTrip) // the TCP handshake would take a round trip; on loopback it takes no time
			server, err := new(net.Dialer).DialContext(ctx, "tcp", d.server.Listener.Addr().String())
			if err != nil {
				_ = client.Close()
				return
			}
			var both sync.WaitGroup
			both.Go(func() { delay(server, client, roundTrip/2) })
			both.Go(func() { delay(client, server, roundTrip/2) })
			both.Wait()
		}()
	}
}

// delay copies bytes from one connection to another, until a connection is closed. Each byte arrives
// the given time after delay has read it. At the end delay closes the destination.
func delay(to io.WriteCloser, from io.Reader, by time.Duration) {
	type chunk struct {
		bytes []byte
		at    time.Time
	}
	chunks := make(chan chunk, 1024)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if n > 0 {
				chunks <- chunk{b[:n], time.Now().Add(by)}
			}
			if err != nil {
				return
			}
		}
	}()
	var broken error
	for c := range chunks {
		time.Sleep(time.Until(c.at))
		if broken == nil {
			_, broken = to.Write(c.bytes)
		}
	}
	if err := to.Close(); err != nil && !errors.Is(err, net.ErrClosed) && broken == nil {
		log.Print(err)
	}
}
