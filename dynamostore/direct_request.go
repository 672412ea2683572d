package dynamostore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// head is what every request of a client begins with. It is taken from a request
// that the SDK made: see direct.rehearse.
type head struct {
	names   []string
	values  []string
	targets map[string]string // X-Amz-Target, by the operation
}

// The header fields that differ from request to request.
const (
	fieldTarget     = "X-Amz-Target"
	fieldInvocation = "Amz-Sdk-Invocation-Id"
	fieldTrace      = "X-Amzn-Trace-Id"
	fieldDate       = "X-Amz-Date"
	fieldToken      = "X-Amz-Security-Token" //nolint:gosec // the name of a field
	fieldSignature  = "Authorization"
)

// endpoint is where requests go, and what they are signed for.
type endpoint struct {
	scheme, host, path string
	headers            http.Header
	name, region       string // of the signature
}

// remembered is the endpoint of the account that was asked for last. All else that
// the rules look at is the same in all calls of a kind.
type remembered struct {
	last atomic.Pointer[accountsEndpoint]
}

type accountsEndpoint struct {
	account string
	to      *endpoint
}

// endpoint runs the client's endpoint rules, once for an account. A transaction has
// rules of its own: they may ask for its tables' ARNs.
func (d *direct) endpoint(ctx context.Context, creds *aws.Credentials, r request) (*endpoint, error) {
	known := &d.single
	tx, several := r.(*transactRequest)
	if several {
		known = &d.several
		if !tx.plain() {
			return nil, errors.New("a table of the transaction is given by its ARN, or by none")
		}
	}
	if _, rules := d.options.EndpointResolverV2.(*rememberingResolver); !rules { // it is the user's: see remembering
		return d.resolve(ctx, creds.AccountID, r.tables(), several)
	}
	if last := known.last.Load(); last != nil && last.account == creds.AccountID {
		return last.to, nil
	}
	to, err := d.resolve(ctx, creds.AccountID, r.tables(), several)
	if err == nil {
		known.last.Store(&accountsEndpoint{creds.AccountID, to})
	}
	return to, err
}

func (d *direct) resolve(ctx context.Context, account string, tables []string, several bool) (*endpoint, error) {
	o := &d.options
	params := dynamodb.EndpointParameters{
		Region:                aws.String(o.Region),
		UseDualStack:          aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
		UseFIPS:               aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		Endpoint:              o.BaseEndpoint,
		AccountIdEndpointMode: aws.String(string(o.AccountIDEndpointMode)),
	}
	if several {
		params.ResourceArnList = tables
	} else {
		params.ResourceArn = &tables[0]
	}
	if account != "" && o.AccountIDEndpointMode != aws.AccountIDEndpointModeDisabled {
		params.AccountId = &account
	}
	if account == "" && o.AccountIDEndpointMode == aws.AccountIDEndpointModeRequired {
		return nil, errors.New("an account is required, and the credentials name none")
	}
	found, err := o.EndpointResolverV2.ResolveEndpoint(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("resolve the endpoint: %w", err)
	}
	to := &endpoint{
		scheme: found.URI.Scheme, host: found.URI.Host, path: smithyhttp.JoinPath(found.URI.Path, "/"), headers: found.Headers,
		name: "dynamodb", region: o.Region,
	}
	schemes, _ := smithyauth.GetAuthOptions(&found.Properties)
	for _, scheme := range schemes {
		if name, ok := smithyhttp.GetSigV4SigningName(&scheme.SignerProperties); ok {
			to.name = name
		}
		if region, ok := smithyhttp.GetSigV4SigningRegion(&scheme.SignerProperties); ok {
			to.region = region
		}
	}
	return to, nil
}

// newInvocation is an id for a call, a random UUID (RFC 9562, section 5.4).
func newInvocation() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // ends the process if it can't
	random[6], random[8] = random[6]&0x0F|0x40, random[8]&0x3F|0x80
	var text [36]byte
	hex.Encode(text[:8], random[:4])
	hex.Encode(text[9:13], random[4:6])
	hex.Encode(text[14:18], random[6:8])
	hex.Encode(text[19:23], random[8:10])
	hex.Encode(text[24:], random[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// mostFields is how many fields a header has as a rule; one more costs an allocation.
const mostFields = 12

// request builds the attempt's request, but for its signature by those credentials.
func (d *direct) request(ctx context.Context, a *attempt, operation string, to *endpoint, creds *aws.Credentials, invocation string) *http.Request {
	// A map of eight is half of what one of nine is.
	fields := len(d.head.names) + len([...]string{fieldTarget, fieldInvocation, fieldDate, fieldSignature}) + len(to.headers)
	trace, traced := d.trace.id(ctx)
	if traced {
		fields++
	}
	if creds.SessionToken != "" {
		fields++
	}
	header, values := make(http.Header, fields), a.fields[:0]
	set := func(name, value string) {
		n := len(values)
		values = append(values, value)
		header[name] = values[n : n+1 : n+1]
	}
	for i, name := range d.head.names {
		set(name, d.head.values[i])
	}
	set(fieldTarget, d.head.targets[operation])
	set(fieldInvocation, invocation)
	if traced {
		set(fieldTrace, trace)
	}
	for name := range to.headers {
		header.Set(name, to.headers.Get(name))
	}
	a.url = url.URL{Scheme: to.scheme, Host: to.host, Path: to.path}
	a.reader.Reset(a.bytes.plain)
	return (&http.Request{
		Method: http.MethodPost, URL: &a.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		// Readers that net/http knows to be in memory it sends with the header, in
		// one packet.
		Body: io.NopCloser(&a.reader), ContentLength: int64(len(a.bytes.plain)),
	}).WithContext(ctx)
}

// sign signs a request as the SDK does.
func (d *direct) sign(r *http.Request, creds *aws.Credentials, to *endpoint, body []byte, at time.Time) error {
	sum := sha256.Sum256(body)
	var digest [2 * sha256.Size]byte
	hex.Encode(digest[:], sum[:])
	return d.options.HTTPSignerV4.SignHTTP(r.Context(), *creds, r, string(digest[:]), to.name, to.region, at) //nolint:wrapcheck // nobody sees it: the SDK is asked then
}
