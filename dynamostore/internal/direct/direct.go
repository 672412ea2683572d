// Package direct sends the first attempt of a request over the client's own HTTP
// client, with its credentials, Region and endpoint, signed as the SDK signs it, but
// without the SDK's middleware. That takes less than half of the processor time.
//
// The package knows one shape of request: that of the SDK it was built with. Before the
// first request it has the SDK make one, which goes nowhere, and compares: see
// [Transport.Ready]. Which clients it serves at all is decided in eligible.go.
package direct

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct/sigv4"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/internal/deadline"
)

// Transport makes first attempts. It is safe for concurrent use.
type Transport struct {
	client  *wire.Client
	options dynamodb.Options // of the SDK's client

	rehearsal sync.Once
	head      head // of every request
	// signsItself is whether requests are signed by package sigv4, which makes the same
	// signatures as the SDK's signer in less time.
	signsItself bool
	signer      sigv4.Signer
	unfit       error // why the SDK's client makes the first attempts after all

	single, several remembered // endpoints of transactions and of other requests
	trace           traces
}

var _ wire.First = (*Transport)(nil)

// New returns a transport for the requests of a client.
func New(client *wire.Client) *Transport {
	return &Transport{client: client, options: client.SDK().Options()}
}

// Ready returns an error that says why the transport can't be used, if it can't.
func (t *Transport) Ready() error {
	t.rehearsal.Do(func() {
		t.unfit = errors.New("the rehearsal of its requests did not end") // if the user's code panics
		t.unfit = t.rehearse()
	})
	return t.unfit
}

// attempt is an attempt with what its request is made of, in one allocation.
type attempt struct {
	wire.Attempt

	url    url.URL
	reader bytes.Reader
	fields [mostFields]string
}

// Attempt makes the first attempt of a call: see [wire.First]. It leaves to the SDK
// whatever fails before the request is sent, because the SDK's error says more.
func (t *Transport) Attempt(ctx context.Context, r *wire.Request) *wire.Attempt {
	if t.Ready() != nil || ctx.Err() != nil {
		return nil
	}
	limited, cancel := deadline.Until(ctx, time.Now().Add(t.client.AttemptTimeout()))
	defer cancel()
	creds, err := t.options.Credentials.Retrieve(limited)
	if err != nil {
		return nil
	}
	to, err := t.endpoint(limited, &creds, r)
	if err != nil {
		return nil
	}
	a := &attempt{}
	req, err := t.request(a.Traced(limited), a, r, to, &creds, newInvocation(), t.client.HTTP().Now())
	if err != nil || limited.Err() != nil { // it may be too late to send the request
		return nil
	}
	a.Send(t.client.HTTP(), req)
	a.Late = (a.Err != nil || a.Cut != nil) && limited.Err() != nil && ctx.Err() == nil
	return &a.Attempt
}
